use std::collections::BTreeMap;
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[derive(serde::Serialize)]
struct Row {
    zeta: f64,
    alpha: Option<&'static str>,
    list: Vec<u8>,
    map: BTreeMap<&'static str, u8>,
}

fn rows() -> Vec<Row> {
    vec![
        Row {
            zeta: 0.5,
            alpha: Some("a,\"b\"\n"),
            list: vec![1, 2],
            map: BTreeMap::from([("k", 1)]),
        },
        Row { zeta: f64::NAN, alpha: None, list: vec![], map: BTreeMap::new() },
    ]
}

fn write_all<T: serde::Serialize>(path: &Path, rows: &[T], columns: &[&str]) -> u64 {
    let mut writer = Writer::create(path).unwrap().columns(columns.iter().copied());
    for row in rows {
        writer.write(row).unwrap();
    }
    writer.finish().unwrap()
}

fn written(name: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    assert_eq!(write_all(&path, &rows(), &[]), 2);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file is left");
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn rows_keep_the_order_of_their_fields_and_nan_is_never_written() {
    assert_eq!(
        written("x.csv"),
        "zeta,alpha,list,map\n0.5,\"a,\"\"b\"\"\n\",\"[1,2]\",\"{\"\"k\"\":1}\"\n,,[],{}\n"
    );
    assert_eq!(
        written("x.tsv"),
        "zeta\talpha\tlist\tmap\n0.5\t\"a,\"\"b\"\"\n\"\t[1,2]\t\"{\"\"k\"\":1}\"\n\t\t[]\t{}\n"
    );
    let lines = "{\"zeta\":0.5,\"alpha\":\"a,\\\"b\\\"\\n\",\"list\":[1,2],\"map\":{\"k\":1}}\n\
                 {\"zeta\":null,\"alpha\":null,\"list\":[],\"map\":{}}\n";
    assert_eq!(written("x.jsonl"), lines);
    assert_eq!(written("x.ndjson"), lines);
    let list = written("x.json");
    assert_eq!(serde_json::from_str::<Vec<serde_json::Value>>(&list).unwrap().len(), 2);
}

#[test]
fn no_rows_are_still_a_file_of_the_format() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("x.json", "[]\n"), ("x.jsonl", ""), ("x.csv", "id,output\n")] {
        let path = folder.path().join(name);
        assert_eq!(write_all::<Case>(&path, &[], &["id", "output"]), 0);
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    }
}

#[test]
fn a_file_appears_only_when_it_is_finished() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    std::fs::write(&path, "before").unwrap();
    let mut writer = Writer::create(&path).unwrap();
    writer.write(&json!({"a": 1})).unwrap();
    writer.flush().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    drop(writer);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    let mut writer = Writer::create(&path).unwrap();
    writer.write(&json!({"a": 1})).unwrap();
    writer.finish().unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"a\":1}\n");
}

#[cfg(unix)]
#[test]
fn permissions_and_links_of_the_target_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (real, link) = (folder.path().join("real.jsonl"), folder.path().join("link.jsonl"));
    std::fs::write(&real, "").unwrap();
    std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    write_all(&link, &[json!({"a": 1})], &[]);
    assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(std::fs::read_to_string(&real).unwrap(), "{\"a\":1}\n");
    assert_eq!(std::fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
    let fresh = folder.path().join("fresh.jsonl");
    write_all(&fresh, &[json!({"a": 1})], &[]);
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "").unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&fresh), mode(&plain), "a new file has the rights that any new file has");
}

#[test]
fn what_can_not_be_written_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let error = Writer::create(&folder.path().join("x.txt")).err().unwrap().to_string();
    assert!(error.contains("x.txt") && error.contains(".jsonl"), "{error}");
    assert!(matches!(
        Writer::create(&folder.path().join("none/x.csv")),
        Err(DatasetError::Write { .. })
    ));
    let mut writer = Writer::create(&folder.path().join("x.csv")).unwrap();
    assert!(matches!(writer.write(&[1]), Err(DatasetError::NotARecord { row: 1, .. })));
    writer.write(&json!({"a": 1})).unwrap();
    let error = writer.write(&json!({"a": 1, "b": 2})).unwrap_err().to_string();
    assert!(error.contains("row 3") && error.contains("`b`"), "{error}");
}

#[test]
fn cells_that_a_spreadsheet_would_execute_are_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv");
    write_all(&path, &[json!({"output": "=HYPERLINK(1)"})], &[]);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "output\n=HYPERLINK(1)\n");
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{1,12}",
        "[\"',;\t\r\n\\\\{}\\[\\] 0=+@中文语éñ🦀👩\u{200d}🔬\u{feff}\u{0}]{1,8}",
        any::<String>()
    ]
    .prop_filter("empty text is no value in CSV", |text| !text.is_empty())
}

fn some_case() -> impl Strategy<Value = Case> {
    let optional = || prop::option::of(text());
    let metadata = prop::collection::btree_map(
        text(),
        prop_oneof![
            text().prop_map(serde_json::Value::from),
            any::<i64>().prop_map(serde_json::Value::from),
            any::<bool>().prop_map(serde_json::Value::from),
            prop::collection::vec(text(), 0..3).prop_map(serde_json::Value::from),
        ],
        0..3,
    );
    let texts = (optional(), any::<String>(), optional(), optional(), optional());
    ((text(), texts), (optional(), optional(), optional(), metadata)).prop_map(
        |((id, (input, output, expected, context, baseline)), (group, split, source, metadata))| {
            Case {
                id,
                input,
                output: Some(output),
                expected,
                context,
                baseline,
                group,
                split,
                source,
                metadata: metadata.into_iter().collect(),
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_written_is_read_back(cases in prop::collection::vec(some_case(), 0..5)) {
        let folder = tempfile::tempdir().unwrap();
        for name in ["c.csv", "c.tsv", "c.jsonl", "c.json", "c.csv.gz", "c.jsonl.gz", "c.json.gz"] {
            let path = folder.path().join(name);
            write_all(&path, &cases, &CASE_COLUMNS);
            let back = read_with(&Source::open(&path).unwrap(), &options()).unwrap();
            prop_assert_eq!(&back, &cases, "{}", name);
        }
    }
}
