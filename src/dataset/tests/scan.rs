use super::*;

#[test]
fn a_scan_counts_what_a_run_would_read() {
    let text =
        "id,prompt,response,human_score,split\n1,q,r,1,train\n2,q,s,,test\n3,q,,0,test\nbad\n";
    let scan = scan(&source(text), &skip()).unwrap();
    assert_eq!((scan.count, scan.labelled, scan.generated_ids), (3, 2, 0));
    assert_eq!(scan.columns, ["id", "prompt", "response", "human_score", "split"]);
    assert_eq!(scan.splits["test"], 2);
    assert_eq!(scan.labels["overall"], 2);
    assert_eq!((scan.fields["input"], scan.fields["expected"]), (3, 0));
    assert_eq!(scan.bytes, text.len() as u64);
    assert_eq!(scan.text_bytes, 5);
    assert_eq!(scan.data_hash, blake3::hash(text.as_bytes()).to_hex().as_str());
    assert_eq!((scan.skipped.count, scan.skipped.first.len()), (1, 1));
    let aliases: Vec<&str> = scan.aliases.iter().map(|a| a.column.as_str()).collect();
    assert_eq!(aliases, ["prompt", "response", "human_score"]);
}

#[test]
fn the_data_hash_is_of_the_whole_decompressed_file() {
    let text = "\u{feff}output,split\na,x\nb,y\nc,x\n";
    let whole = scan(&source(text), &options()).unwrap().data_hash;
    assert_eq!(whole, blake3::hash(text.as_bytes()).to_hex().as_str());
    let limited = ReadOptions { limit: Some(1), split: Some("x".into()), ..options() };
    assert_eq!(scan(&source(gzip(text.as_bytes())), &limited).unwrap().data_hash, whole);
    assert_ne!(scan(&source("output,split\na,x\n"), &options()).unwrap().data_hash, whole);
}

#[test]
fn a_repeated_id_is_named_with_both_lines() {
    let text = "{\"id\":\"a\",\"output\":\"1\"}\n\n{\"id\":\"b\",\"output\":\"2\"}\n{\"id\":\"a\",\"output\":\"3\"}\n";
    let error = scan(&source(text), &options()).unwrap_err().to_string();
    assert!(error.contains("id `a` twice, on lines 1 and 4"), "{error}");
    let one_line =
        "[{\"id\":1,\"output\":\"x\"},{\"id\":2,\"output\":\"x\"},{\"id\":\"1\",\"output\":\"x\"}]";
    assert!(matches!(
        scan(&source(one_line), &options()),
        Err(DatasetError::DuplicateId { first: 1, second: 1, .. })
    ));
    let split = ReadOptions { split: Some("x".into()), ..options() };
    let text = "id,output,split\n1,a,x\n1,b,y\n";
    assert_eq!(scan(&source(text), &split).unwrap().count, 1, "only what is read must be unique");
}

#[test]
fn identical_rows_without_ids_are_named_as_such_also_behind_bad_rows() {
    let text = "output,input\nbad\na,b\nworse,row,here\nc,d\na,b\n";
    let error = scan(&source(text), &skip()).unwrap_err();
    assert!(matches!(error, DatasetError::IdenticalRows { first: 3, second: 6, .. }), "{error}");
}

#[test]
fn no_rows_are_a_count_of_zero() {
    for text in ["", "output\n", "[]"] {
        assert_eq!(scan(&source(text), &options()).unwrap().count, 0);
    }
    let split = ReadOptions { split: Some("test".into()), ..options() };
    assert_eq!(scan(&source(""), &split).unwrap().count, 0);
}

#[test]
fn a_split_that_no_case_has_is_an_error_with_a_near_miss() {
    let split = ReadOptions { split: Some("tset".into()), ..options() };
    let error = scan(&source("output,split\na,test\nb,train\n"), &split).unwrap_err().to_string();
    assert!(error.contains("`tset`") && error.contains("did you mean `test`?"), "{error}");
    let error = scan(&source("output\na\n"), &split).unwrap_err().to_string();
    assert!(error.contains("its splits are none"), "{error}");
}

#[test]
fn many_cases_stream_and_stay_unique() {
    let mut text = String::from("id,input,output\n");
    for i in 0..20_000 {
        text.push_str(&format!("case-{i},\"question {i}\nwith a line\",answer {i}\n"));
    }
    let source = source(&text);
    assert_eq!(scan(&source, &options()).unwrap().count, 20_000);
    assert_eq!(Reader::open(&source, &options()).unwrap().count(), 20_000);
    text.push_str("case-17,x,y\n");
    let error = scan(&super::source(&text), &options()).unwrap_err();
    assert!(
        matches!(error, DatasetError::DuplicateId { first: 36, second: 40_002, .. }),
        "{error}"
    );
}
