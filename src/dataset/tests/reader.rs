use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn the_same_cases_come_from_every_format() {
    let csv = "id,input,output\na,q1,r1\nb,q2,\"r,2\"\n";
    let tsv = "id\tinput\toutput\na\tq1\tr1\nb\tq2\tr,2\n";
    let lines = "{\"id\":\"a\",\"input\":\"q1\",\"output\":\"r1\"}\n{\"id\":\"b\",\"input\":\"q2\",\"output\":\"r,2\"}";
    let list = "[{\"id\":\"a\",\"input\":\"q1\",\"output\":\"r1\"},\n {\"id\":\"b\",\"input\":\"q2\",\"output\":\"r,2\"}]";
    let expected = read(csv);
    assert_eq!(expected.len(), 2);
    let read_as =
        |text: &str, format| read_with(&source(text).with_format(format), &options()).unwrap();
    assert_eq!(read_as(tsv, Format::Tsv), expected);
    assert_eq!(read(lines), expected);
    assert_eq!(read(list), expected);
    for text in [csv, lines, list] {
        assert_eq!(read(gzip(text.as_bytes())), expected);
    }
}

#[test]
fn gzip_of_several_members_is_read_to_its_end_and_a_cut_one_is_an_error() {
    let mut data = gzip(b"output\nfirst\n");
    data.extend(gzip(b"second\n"));
    assert_eq!(outputs(&read(&data)), ["first", "second"]);
    let mut trailing = gzip(b"output\nfirst\n");
    trailing.extend(b"no gzip");
    let read = Source::spool(trailing.as_slice(), "data").and_then(|s| read_with(&s, &skip()));
    assert!(matches!(read, Err(DatasetError::Read { .. })), "bytes behind the end are not lost");
    let long: String =
        (0..50_000_u64).map(|i| format!("{:x}\n", i.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
    let whole = gzip(format!("output\n{long}").as_bytes());
    let cut = &whole[..whole.len() / 2];
    let result = read_with(&source(cut), &skip());
    let error = result.unwrap_err();
    assert!(error.to_string().contains("failed to read further"), "{error}");
}

#[test]
fn marks_blank_lines_and_windows_line_ends_are_tolerated() {
    let csv = "\u{feff}\r\noutput,input\r\n\r\na,\"b\r\nc\"\r\n,\r\n,,,\r\n\n";
    let cases = read(csv);
    assert_eq!(cases.len(), 1);
    assert_eq!(cases[0].input.as_deref(), Some("b\r\nc"));
    let lines = "\u{feff}\n{\"output\":\"a\"}\r\n  \r\n{\"output\":\"b\"}\r\n\n";
    assert_eq!(outputs(&read(lines)), ["a", "b"]);
    assert_eq!(outputs(&read("\u{feff} [ {\"output\":\"a\"} ] \n")), ["a"]);
}

#[test]
fn readers_and_writers_can_move_to_a_worker_thread() {
    fn is_send<T: Send>() {}
    is_send::<Reader>();
    is_send::<LabelReader>();
    is_send::<JudgementReader>();
    is_send::<Writer>();
    is_send::<DatasetError>();
}

#[test]
fn nothing_at_all_is_no_case_and_no_error() {
    for text in ["", "\u{feff}", "\n\n", "output\n", "[]", " [ ] ", "output,input\n,\n"] {
        assert_eq!(read(text), [], "{text:?}");
    }
}

#[test]
fn lines_are_those_of_the_file_on_which_the_record_begins() {
    let csv = "input,output\r\n\"a\r\nb\",x\r\n\r\n\r\n\"c\n\nd\",y\r\nbad\r\n";
    let mut reader = Reader::open(&source(csv), &options()).unwrap();
    let lines: Vec<u64> = std::iter::from_fn(|| reader.next_row())
        .map(|row| row.map_or_else(|error| error.line(), |row| row.line))
        .collect();
    assert_eq!(lines, [2, 6, 9]);
    let list = "[\n{\"output\":\n\"a\"}\n,\n\n{\"output\":\"b\"}, 7]";
    let mut reader = Reader::open(&source(list), &options()).unwrap();
    let lines: Vec<u64> = std::iter::from_fn(|| reader.next_row())
        .map(|row| row.map_or_else(|error| error.line(), |row| row.line))
        .collect();
    assert_eq!(lines, [2, 6, 6]);
}

#[test]
fn broken_utf8_names_its_line_and_costs_only_its_row() {
    let csv = b"output,input\na,1\n\xff\xfe,2\nb\xe4,\xb8\xad\nc,3\n".to_vec();
    let lines = b"{\"output\":\"a\"}\n{\"output\":\"\xff\"}\n{\"output\":\"\xe4\xb8\"}\n{\"output\":\"c\"}\n";
    let list = b"[{\"output\":\"a\"},\n{\"output\":\"\xff\"},\n{\"output\":\"\xe4\xb8\"},\n{\"output\":\"c\"}]";
    for (data, line) in [(csv, 3), (lines.to_vec(), 2), (list.to_vec(), 2)] {
        let error = error_of(&data, &options());
        assert!(error.contains(&format!("line {line}: broken UTF-8")), "{error}");
        let source = source(&data);
        let mut reader = Reader::open(&source, &skip()).unwrap();
        let cases: Vec<Case> = reader.by_ref().collect::<Result<_, _>>().unwrap();
        assert_eq!(outputs(&cases), ["a", "c"]);
        assert_eq!(reader.skipped().count, 2);
        assert!(reader.skipped().first[0].contains("broken UTF-8"));
    }
}

#[test]
fn other_encodings_are_named() {
    let utf16: Vec<u8> = "\u{feff}output\na\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let error = error_of(utf16, &options());
    assert!(error.contains("UTF-16") && error.contains("save it as UTF-8"), "{error}");
}

#[test]
fn faulty_csv_is_refused_and_not_joined_together() {
    let cases = [
        ("output\na,b\n", "line 2: 2 cells where the header has 1"),
        ("output,input\n\"a\"b,c\n", "line 2: text follows the closing quote of cell 1"),
        ("output,input\na,b\rc\n", "line 2: a carriage return stands in cell 2"),
        ("output,input\nx,y\na,\"b\nc,d\n", "line 3: a quote opened in this row is never closed"),
        ("output\ra\rb\r", "carriage return alone"),
        ("output,input,output\n", "two columns named `output`"),
    ];
    for (text, message) in cases {
        let error = error_of(text, &options());
        assert!(error.contains(message), "{text:?}: {error}");
    }
    let skipped = read_with(&source("output,input\n\"a\"b,\"c\nd\"\nx,y\n"), &skip()).unwrap();
    assert_eq!(outputs(&skipped), ["x"], "the faulty row is read to its end");
    let open = read_with(&source("output,input\na,\"b\nc,d\n"), &skip());
    assert!(open.is_err(), "rows behind an open quote are lost, so it can't be skipped");
    assert_eq!(outputs(&read("output,input\n5\" pipe,\"say \"\"hi\"\"\"\n")), ["5\" pipe"]);
}

#[test]
fn faulty_json_is_refused_with_line_and_cure() {
    let cases = [
        ("{\"output\":\"a\"}\n{\"output\":NaN}\n", "line 2: not valid JSON"),
        ("{\"output\":\"a\",\"x\":NaN}\n", "`NaN` is not JSON, write `null`"),
        ("{\"output\":\"a\",\"x\":-Infinity}\n", "`Infinity` is not JSON, write `null`"),
        ("{\"output\":\"a\"} {\"output\":\"b\"}\n", "line 1: not valid JSON"),
        ("{\"output\":\"a\"}\n\"b\"\n", "line 2: expected a JSON object, found text"),
        ("{\"output\":\"a\"}\n[1]\n", "line 2: expected a JSON object, found a list"),
        ("{\"output\":\"a\",\"output\":\"b\"}\n", "field `output`: the key stands twice"),
        ("{\"output\":\"\\ud83d\"}\n", "field `output`: not valid JSON"),
        ("[{\"output\":\"a\"}", "the file ends before `]`"),
        ("[{\"output\":\"a\"", "the file ends inside an element"),
        ("[{\"output\":\"a\"},]", "expected a value after `,`"),
        ("[,{\"output\":\"a\"}]", "expected a value before `,`"),
        ("[{\"output\":\"a\"}{\"output\":\"b\"}]", "expected `,` or `]`"),
        ("[{\"output\":\"a\"}]\n[]", "something follows"),
        ("[{\"output\":\"a\"}}]", "expected `,` or `]`"),
        ("[}]", "line 1: not valid JSON"),
        ("{\"output\":\"a\"\n}\n", "line 1: not valid JSON: EOF"),
    ];
    for (text, message) in cases {
        let error = error_of(text, &options());
        assert!(error.contains(message), "{text:?}: {error}");
    }
    let text = "[{\"output\":\"a\"}, {oops}, [1], {\"output\":\"b\"}]";
    assert_eq!(outputs(&read_with(&source(text), &skip()).unwrap()), ["a", "b"]);
    let deep = format!("{{\"output\":\"a\",\"x\":{}1{}}}\n", "[".repeat(5000), "]".repeat(5000));
    assert!(error_of(deep, &options()).contains("field `x`: not valid JSON: recursion limit"));
}

#[test]
fn a_row_beyond_the_limit_ends_the_reading() {
    let options = ReadOptions { max_row_bytes: 1000, ..skip() };
    let long = "x".repeat(2000);
    for text in [
        format!("output\na\n{long}\n"),
        format!("output\na\n\"{}\n", "x\n".repeat(1000)),
        format!("{{\"output\":\"a\"}}\n{{\"output\":\"{long}\"}}\n"),
        format!("[{{\"output\":\"a\"}},{{\"output\":\"{long}\"}}]"),
    ] {
        let error = error_of(&text, &options);
        assert!(error.contains("the row is longer than 1000 bytes"), "{error}");
    }
    let huge = "語".repeat(1_000_000);
    assert_eq!(read(format!("output,input\n{huge},x\n"))[0].output.as_ref().unwrap(), &huge);
}

#[test]
fn names_of_other_tools_are_understood_and_reported() {
    let text = r#"{"item_id":7,"instruction":"q","model_output":"r","reference":"e","retrieval_context":["c","d"],"generator":"m","task_id":"t","datasplit":"x","meta":{"k":1},"extra":true,"gone":null}"#;
    let source = source(text);
    let mut reader = Reader::open(&source, &options()).unwrap();
    let case = reader.next().unwrap().unwrap();
    assert!(reader.next().is_none());
    let expected = Case {
        id: "7".into(),
        input: Some("q".into()),
        output: Some("r".into()),
        expected: Some("e".into()),
        context: Some("c\nd".into()),
        source: Some("m".into()),
        group: Some("t".into()),
        split: Some("x".into()),
        metadata: json!({"k": 1, "extra": true}).as_object().unwrap().clone(),
        ..Case::default()
    };
    assert_eq!(case, expected);
    let aliases: Vec<String> =
        reader.aliases().iter().map(|a| format!("{}<-{}", a.field, a.column)).collect();
    assert_eq!(
        aliases,
        [
            "id<-item_id",
            "input<-instruction",
            "output<-model_output",
            "expected<-reference",
            "context<-retrieval_context",
            "group<-task_id",
            "split<-datasplit",
            "source<-generator",
            "metadata<-meta"
        ]
    );
}

#[test]
fn two_columns_of_one_field_may_agree_and_may_not_differ() {
    for text in [
        "output,response\na,a\n",
        "output,response\na,\n",
        "response,output\n,a\n",
        "{\"output\":\"a\",\"response\":null}",
        "{\"output\":null,\"response\":\"a\"}",
        "{\"output\":\"\",\"response\":\"a\"}",
        "{\"output\":\"a\",\"response\":\"\\u0061\"}",
    ] {
        assert_eq!(outputs(&read(text)), ["a"], "{text}");
    }
    for text in
        ["output,response\nx,x\na,b\n", "{\"output\":\"x\"}\n{\"answer\":\"a\",\"output\":\"b\"}"]
    {
        let error = error_of(text, &options());
        assert!(error.contains("line") && error.contains("both mean `output`"), "{error}");
        assert!(error.contains("--map output=COLUMN"), "{error}");
    }
    let both = source("output,response\na,b\n");
    let case = &read_with(&both, &mapped(&["output=response"])).unwrap()[0];
    assert_eq!(case.output.as_deref(), Some("b"));
    assert_eq!(case.metadata["output"], "a", "a column not chosen is kept as metadata");
    let groups = source("output,task_id,question_id\na,1,2\n");
    assert!(read_with(&groups, &options()).is_err());
    let case = &read_with(&groups, &mapped(&["group="])).unwrap()[0];
    assert_eq!((case.group.as_deref(), case.metadata.len()), (None, 2));
}

#[test]
fn a_mapping_to_a_path_reads_what_is_inside_a_column() {
    let rows = concat!(
        r#"{"output":"a","meta":{"doc":"d1","by":{"system":"M1"},"x.y":"dotted"}}"#,
        "\n",
        r#"{"output":"b","meta":{"doc":7}}"#,
        "\n",
    );
    let file = source(rows);
    for (path, found) in [("meta.doc", "d1"), ("doc", "d1"), ("metadata.by.system", "M1")] {
        let case = &read_with(&file, &mapped(&[&format!("group={path}")])).unwrap()[0];
        assert_eq!(case.group.as_deref(), Some(found), "{path}");
        assert!(case.metadata.contains_key("doc"), "what was read stays in the metadata");
    }
    let cases = read_with(&file, &mapped(&["group=meta.doc", "source=meta.x.y"])).unwrap();
    assert_eq!(cases[0].source.as_deref(), Some("dotted"));
    assert_eq!((cases[1].group.as_deref(), cases[1].source.as_deref()), (Some("7"), None));
    let csv = "output,meta\na,\"{\"\"doc\"\":\"\"d1\"\"}\"\n";
    let case = &read_with(&source(csv), &mapped(&["group=meta.doc"])).unwrap()[0];
    assert_eq!(case.group.as_deref(), Some("d1"));
    for (text, path) in [(rows, "meta.dco"), (csv, "meta.dco"), ("output,other\na,b\n", "meta.doc")]
    {
        let error = error_of(text, &mapped(&[&format!("group={path}")]));
        assert!(error.contains(path), "{error}");
    }
}

#[test]
fn a_mapping_to_no_column_names_those_there_are() {
    let csv = error_of("text,completion\na,b\n", &mapped(&["output=completoin"]));
    assert!(csv.contains("no column `completoin` to read as `output`"), "{csv}");
    assert!(csv.contains("did you mean `completion`?") && csv.contains("`text`"), "{csv}");
    let row = error_of("{\"completion\":\"b\"}\n", &mapped(&["output=completoin"]));
    assert!(row.contains("line 1") && row.contains("did you mean `completion`?"), "{row}");
    let end = error_of("{\"output\":\"b\"}\n", &mapped(&["group=grp"]));
    assert!(end.contains("no column `grp` to read as `group`"), "{end}");
    let limited = ReadOptions { limit: Some(1), ..mapped(&["group=grp"]) };
    assert!(error_of("{\"output\":\"b\"}\n{\"output\":\"c\"}\n", &limited).contains("`grp`"));
    let unknown = error_of("output\na\n", &mapped(&["outptu=output"]));
    assert!(unknown.contains("did you mean `output`?"), "{unknown}");
}

#[test]
fn a_missing_output_column_is_an_error_unless_none_is_required() {
    for text in ["input,text\na,b\n", "{\"input\":\"a\",\"text\":\"b\"}\n"] {
        let error = error_of(text, &options());
        assert!(error.contains("no `output`; the columns are `input`, `text`"), "{error}");
        assert!(error.contains("`completion`") && error.contains("--map output=COLUMN"), "{error}");
        let case = &read_with(&source(text), &bare()).unwrap()[0];
        assert_eq!(case.output, None);
        assert_eq!(case.metadata["text"], "b");
    }
    let null = error_of("{\"output\":null}\n", &options());
    assert!(null.contains("line 1, field `output`: no value"), "{null}");
}

#[test]
fn an_empty_output_is_an_output_and_other_empty_cells_say_nothing() {
    let case = &read("id,input,output,expected,group,note\n1,,,,,\n")[0];
    let expected = Case { id: "1".into(), output: Some(String::new()), ..Case::default() };
    assert_eq!(*case, expected);
    let case = &read(r#"{"id":"","input":"","output":"","group":"","split":null}"#)[0];
    assert_eq!(case.input.as_deref(), Some(""));
    assert_eq!((case.group.as_deref(), case.id.len()), (None, 16));
}

#[test]
fn a_missing_id_becomes_a_hash_of_the_content() {
    let a = &read("input,output\nq,r\n")[0];
    assert_eq!(a.id, Case::new("q", "r").id);
    assert_eq!(*a, read("{\"output\":\"r\",\"input\":\"q\"}")[0]);
}

#[test]
fn names_hold_text_or_numbers_and_nothing_else() {
    let case = &read(r#"{"id":12345678901234567890123,"output":1.50,"group":true}"#)[0];
    assert_eq!(case.id, "12345678901234567890123");
    assert_eq!((case.output.as_deref(), case.group.as_deref()), (Some("1.50"), Some("true")));
    let error = error_of(r#"{"output":"a","source":{"name":"x"}}"#, &options());
    assert!(
        error.contains("field `source`: expected text or a number, found an object"),
        "{error}"
    );
}

#[test]
fn metadata_takes_what_no_field_does() {
    let csv = "output,metadata,note\na,\"{\"\"k\"\": [1, null]}\",=1+1\nb,plain,\n";
    let cases = read(csv);
    assert_eq!(
        serde_json::Value::from(cases[0].metadata.clone()),
        json!({"k": [1, null], "note": "=1+1"})
    );
    assert_eq!(serde_json::Value::from(cases[1].metadata.clone()), json!({"metadata": "plain"}));
    assert!(error_of("output,metadata\na,{oops\n", &options()).contains("field `metadata`"));
    let error = error_of(r#"{"output":"a","metadata":{"k":1},"k":2}"#, &options());
    assert!(error.contains("field `k`") && error.contains("`metadata`"), "{error}");
    assert_eq!(read(r#"{"output":"a","metadata":{"k":1},"k":1}"#)[0].metadata.len(), 1);
    let index = &read(",output\n0,a\n")[0];
    assert_eq!(index.metadata["column_1"], "0");
}

#[test]
fn labels_in_the_row_are_no_part_of_the_case() {
    let with = source("output,rating,rater,label_source\na,4,eva,human\n");
    let mut reader = Reader::open(&with, &options()).unwrap();
    let row = reader.next_row().unwrap().unwrap();
    assert!(row.case.metadata.is_empty());
    assert_eq!(row.case, read("output\na\n")[0]);
    assert_eq!((row.labels.len(), row.labels[0].rater.as_str()), (1, "eva"));
    let without = &read("output,rating,rater\na,,eva\n")[0];
    assert_eq!(without.metadata["rater"], "eva", "without a label it is not dropped");
}

#[test]
fn split_and_limit_choose_cases_in_order() {
    let text = "output,split\na,test\nb,train\nc,test\nd,test\n";
    let chosen = ReadOptions { split: Some("test".into()), limit: Some(2), ..options() };
    assert_eq!(outputs(&read_with(&source(text), &chosen).unwrap()), ["a", "c"]);
    let none = ReadOptions { limit: Some(0), ..options() };
    assert_eq!(read_with(&source(text), &none).unwrap(), []);
}

#[test]
fn reading_goes_on_behind_a_bad_row_if_the_caller_wants() {
    let source = source("{\"output\":\"a\"}\nno\n{\"output\":\"b\"}\n");
    let rows: Vec<_> = Reader::open(&source, &options()).unwrap().collect();
    assert_eq!(rows.len(), 3);
    assert!(rows[1].as_ref().unwrap_err().is_skippable());
    assert_eq!(rows[2].as_ref().unwrap().output.as_deref(), Some("b"));
}

#[test]
fn files_are_told_by_extension_and_json_files_of_lines_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &[u8]| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let open = |name: &str, text: &[u8]| {
        read_with(&Source::open(&write(name, text)).unwrap(), &options()).unwrap()
    };
    assert_eq!(outputs(&open("a.CSV", b"output\na\n")), ["a"]);
    assert_eq!(outputs(&open("a.tsv.gz", &gzip(b"output\tinput\na,b\tc\n"))), ["a,b"]);
    assert_eq!(outputs(&open("a.json", b"[{\"output\":\"a\"}]")), ["a"]);
    assert_eq!(outputs(&open("b.json", b"{\"output\":\"a\"}\n{\"output\":\"b\"}\n")), ["a", "b"]);
    assert_eq!(
        outputs(&open("plain.jsonl.gz", b"{\"output\":\"a\"}")),
        ["a"],
        "gzip is told by bytes"
    );
    assert_eq!(outputs(&open("zipped.ndjson", &gzip(b"{\"output\":\"a\"}"))), ["a"]);
    let error = Source::open(&write("a.xlsx", b"")).unwrap_err().to_string();
    assert!(error.contains("a.xlsx") && error.contains(".jsonl"), "{error}");
    assert!(matches!(
        Source::open(&folder.path().join("none.csv")),
        Err(DatasetError::Read { .. })
    ));
    assert!(matches!(Source::open(folder.path()), Err(DatasetError::Read { .. })));
}

/// A cell of any text, quoted where it must be and now and then where it need not.
fn cell() -> impl Strategy<Value = (String, bool)> {
    ("[a-c\"\n\r,;\t 语🦀é]{0,6}", any::<bool>())
}

proptest! {
    #[test]
    fn well_formed_csv_is_read_as_the_csv_crate_reads_it(
        rows in prop::collection::vec((cell(), cell(), cell()), 0..6),
        crlf in any::<bool>(),
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let mut text = format!("output,x,y{end}");
        for (a, b, c) in &rows {
            let cells: Vec<String> = [a, b, c].into_iter().map(|(cell, quoted)| {
                if *quoted || cell.contains(['"', '\n', '\r', ',']) {
                    format!("\"{}\"", cell.replace('"', "\"\""))
                } else {
                    cell.clone()
                }
            }).collect();
            text.push_str(&cells.join(","));
            text.push_str(end);
        }
        let mut theirs = csv::Reader::from_reader(text.as_bytes());
        let theirs: Vec<Vec<String>> = theirs
            .records()
            .map(|row| row.unwrap().iter().map(str::to_owned).collect())
            .filter(|row: &Vec<String>| !row.iter().all(String::is_empty))
            .collect();
        let ours: Vec<Vec<String>> = read(&text).into_iter().map(|case| {
            let cell = |name: &str| match case.metadata.get(name) {
                Some(value) => value.as_str().unwrap().to_owned(),
                None => String::new(),
            };
            vec![case.output.clone().unwrap(), cell("x"), cell("y")]
        }).collect();
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn hostile_bytes_are_an_error_or_cases_and_never_a_panic(
        bytes in prop::collection::vec(prop::sample::select(b"{}[]\",:\\\r\n \toutpu1n\xff\xe4".to_vec()), 0..60),
        format in prop::sample::select(vec![Format::Csv, Format::Tsv, Format::Json, Format::JsonLines]),
    ) {
        let mut data = b"output,\n".to_vec();
        data.extend(&bytes);
        for data in [&data, &bytes] {
            if let Ok(source) = Source::spool(data.as_slice(), "data") {
                let source = source.with_format(format);
                let _ = scan(&source, &skip());
                let _ = read_labels(&source, &LabelOptions::default());
            }
        }
    }
}
