for total, pages in {0: 1, 1: 1, 9: 1, 10: 1, 11: 2, 20: 2, 21: 3}.items():
    assert last_page(total, 10) == pages, (total, last_page(total, 10))
