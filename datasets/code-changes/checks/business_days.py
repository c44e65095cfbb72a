from datetime import date

monday, friday, saturday, sunday = (date(2024, 1, day) for day in (1, 5, 6, 7))
assert business_days(monday, friday) == 5
assert business_days(monday, sunday) == 5, business_days(monday, sunday)
assert business_days(monday, monday) == 1
assert business_days(saturday, sunday) == 0
assert business_days(friday, date(2024, 1, 8)) == 2
assert business_days(friday, monday) == 0
assert business_days(date(2024, 1, 1), date(2024, 12, 31)) == 262
