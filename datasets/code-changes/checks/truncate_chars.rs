fn main() {
    assert_eq!(truncate("hello", 3), "hel");
    assert_eq!(truncate("hello", 0), "");
    assert_eq!(truncate("hello", 5), "hello");
    assert_eq!(truncate("hello", usize::MAX), "hello");
    assert_eq!(truncate("", 4), "");
    assert_eq!(truncate("na\u{ef}ve", 3), "na\u{ef}");
    assert_eq!(truncate("\u{5bb9}\u{6613}\u{7684}", 2), "\u{5bb9}\u{6613}");
}
