fn main() {
    assert_eq!(median(&[]), None);
    assert_eq!(median(&[7]), Some(7.0));
    assert_eq!(median(&[3, 1, 2]), Some(2.0));
    assert_eq!(median(&[4, 1, 3, 2]), Some(2.5));
    assert_eq!(median(&[-3, -1]), Some(-2.0));
    assert_eq!(median(&[i64::MAX, i64::MAX]), Some(i64::MAX as f64));
    assert_eq!(median(&[i64::MIN, i64::MIN]), Some(i64::MIN as f64));
}
