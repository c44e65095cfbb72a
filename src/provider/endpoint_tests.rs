use super::*;
use crate::provider::Client;

const KEY: &str = "sk-very-secret-0123456789";

/// A client whose environment has a key for everyone.
fn client() -> Client {
    Client::with_variables(|name| name.ends_with("_KEY").then(|| KEY.to_owned()))
}

fn spec(model: &str) -> EndpointSpec {
    EndpointSpec { model: model.into(), ..EndpointSpec::default() }
}

fn at(model: &str, base_url: &str) -> EndpointSpec {
    EndpointSpec { base_url: Some(base_url.into()), ..spec(model) }
}

fn refusal(spec: &EndpointSpec) -> String {
    client().endpoint(spec).unwrap_err().to_string()
}

#[test]
fn a_model_is_split_at_its_first_separator_only() {
    for (written, name) in [
        ("openai/gpt-4.1-mini", "openai/gpt-4.1-mini"),
        ("openai:gpt-4.1-mini", "openai/gpt-4.1-mini"),
        ("openai/org/model:tag", "openai/org/model:tag"),
        ("ollama:qwen2.5:7b", "ollama/qwen2.5:7b"),
        ("Google/gemini-2.5-flash", "gemini/gemini-2.5-flash"),
        (" openrouter/meta/llama-3:free ", "openrouter/meta/llama-3:free"),
        ("vllm/模型", "vllm/模型"),
    ] {
        assert_eq!(client().endpoint(&spec(written)).unwrap().model(), name);
    }
}

#[test]
fn a_model_that_can_not_be_is_refused_with_a_way_out() {
    for (written, expected) in [
        ("opnai/gpt-4.1", "did you mean `openai/gpt-4.1`?"),
        ("gpt-4.1", "did you mean `openai/gpt-4.1`?"),
        ("claude-sonnet-5", "did you mean `anthropic/claude-sonnet-5`?"),
        ("acme/model-1", "expected one of openai, azure"),
        ("https://api.openai.com/v1", "is not a provider"),
        ("mystery", "expected `provider/model`"),
        ("openai/", "expected a model after `openai/`"),
        ("", "expected `provider/model`"),
    ] {
        assert!(refusal(&spec(written)).contains(expected), "{}", refusal(&spec(written)));
    }
}

#[test]
fn every_provider_has_an_address_that_works() {
    for service in super::super::service::SERVICES {
        let model = format!("{}/m", service.name);
        match service.base_url {
            Some(url) => {
                let endpoint = client().endpoint(&spec(&model)).unwrap();
                assert_eq!(endpoint.base_url(), url);
            }
            None => assert!(refusal(&spec(&model)).contains("base_url")),
        }
    }
}

#[test]
fn the_request_goes_where_the_dialect_says_and_keeps_the_query() {
    for (spec, url) in [
        (spec("openai/m"), "https://api.openai.com/v1/chat/completions"),
        (spec("anthropic/m"), "https://api.anthropic.com/v1/messages"),
        (
            spec("gemini/gemini-x"),
            "https://generativelanguage.googleapis.com/v1beta/models/gemini-x:generateContent",
        ),
        (
            spec("gemini/tunedModels/x"),
            "https://generativelanguage.googleapis.com/v1beta/tunedModels/x:generateContent",
        ),
        (at("openai/m", "http://127.0.0.1:9"), "http://127.0.0.1:9/v1/chat/completions"),
        (at("openai/m", "http://h:9/api/"), "http://h:9/api/chat/completions"),
        (
            at("azure/m", "https://n.openai.azure.com/openai/v1?api-version=preview"),
            "https://n.openai.azure.com/openai/v1/chat/completions?api-version=preview",
        ),
    ] {
        assert_eq!(client().endpoint(&spec).unwrap().inner.url.as_str(), url);
    }
}

#[test]
fn a_key_goes_to_its_provider_and_to_no_other_server_unless_told() {
    let sent = |spec: &EndpointSpec| {
        let endpoint = client().endpoint(spec).unwrap();
        ["authorization", "x-api-key", "x-goog-api-key", "api-key"]
            .iter()
            .filter_map(|name| Some((*name, endpoint.inner.headers.get(*name)?.to_str().unwrap())))
            .map(|(name, value)| format!("{name}: {value}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(sent(&spec("openai/m")), [format!("authorization: Bearer {KEY}")]);
    assert_eq!(sent(&spec("anthropic/m")), [format!("x-api-key: {KEY}")]);
    assert_eq!(sent(&spec("gemini/m")), [format!("x-goog-api-key: {KEY}")]);
    let azure = at("azure/m", "https://n.openai.azure.com/openai/v1");
    assert_eq!(sent(&azure), [format!("api-key: {KEY}")]);
    assert_eq!(sent(&at("openai/m", "https://api.openai.com/v1/")).len(), 1);
    for spec in [
        spec("ollama/m"),
        at("openai/m", "http://127.0.0.1:8080/v1"),
        at("openai/m", "https://elsewhere.example/v1"),
        at("anthropic/m", "https://api.anthropic.com.evil.example/v1"),
    ] {
        assert_eq!(sent(&spec), Vec::<String>::new(), "{spec:?}");
        let told = EndpointSpec { api_key_env: Some("MY_KEY".into()), ..spec };
        assert_eq!(sent(&told).len(), 1, "{told:?}");
    }
}

#[test]
fn a_missing_or_empty_key_names_its_variable() {
    for value in [None, Some("  ")] {
        let client = Client::with_variables(move |_| value.map(str::to_owned));
        let error = client.endpoint(&spec("gemini/m")).unwrap_err().to_string();
        assert!(error.contains("GEMINI_API_KEY` or `GOOGLE_API_KEY"), "{error}");
        assert!(error.contains("gemini/m"), "{error}");
        let told = EndpointSpec {
            api_key_env: Some("MY_KEY".into()),
            ..at("openai/m", "http://127.0.0.1:1")
        };
        let error = client.endpoint(&told).unwrap_err();
        let expected =
            EndpointError::MissingKey { model: "openai/m".into(), variable: "MY_KEY".into() };
        assert_eq!(error, expected);
    }
}

#[test]
fn no_key_is_ever_printed() {
    let full = EndpointSpec {
        headers: BTreeMap::from([("x-team".into(), "header-secret-value".into())]),
        ..spec("openai/m")
    };
    let client = client();
    let endpoint = client.endpoint(&full).unwrap();
    let printed = format!(
        "{client:?} {endpoint:?} {full:?} {:?} {}",
        endpoint.inner.headers,
        endpoint.identity()
    );
    assert!(!printed.contains(KEY) && !printed.contains("header-secret"), "{printed}");
    let bad = Client::with_variables(|_| Some("sk-bad\u{1}key".into()));
    let error = bad.endpoint(&spec("openai/m")).unwrap_err();
    assert!(!format!("{error} {error:?}").contains("sk-bad"), "{error}");
}

#[test]
fn impossible_addresses_headers_limits_and_prices_are_refused() {
    for (url, expected) in [
        ("localhost:8080", "http://"),
        ("ftp://h/v1", "http://"),
        ("not a url", "not a URL"),
        ("http://user:hunter2@h/v1", "user or password"),
        ("https://h/v1?key=hunter2", "credential in `key`"),
        ("http://h/v1/chat/completions", "leave out `/chat/completions`"),
        ("", "not a URL"),
    ] {
        let error = refusal(&at("openai/m", url));
        assert!(error.contains("base_url") && error.contains(expected), "{url}: {error}");
        assert!(!error.contains("hunter2"), "{error}");
    }
    for (name, value) in [("bad name", "x"), ("ok", "line\nbreak-secret")] {
        let headers = BTreeMap::from([(name.to_owned(), value.to_owned())]);
        let error = refusal(&EndpointSpec { headers, ..spec("ollama/m") });
        assert!(error.contains("headers") && !error.contains("secret"), "{error}");
    }
    let zero = EndpointSpec { requests_per_minute: Some(0), ..spec("ollama/m") };
    assert!(refusal(&zero).contains("`requests_per_minute`: expected at least 1"));
    for input in [-1.0, f64::NAN, f64::INFINITY] {
        let price = Some(Price { input, output: 1.0, cached_input: None });
        assert!(refusal(&EndpointSpec { price, ..spec("ollama/m") }).contains("`price`"));
    }
}

#[test]
fn only_the_providers_own_server_has_the_listed_price() {
    let client = client();
    let price = |spec: &EndpointSpec| client.endpoint(spec).unwrap().price();
    assert!(price(&spec("openai/gpt-4.1-mini")).is_some());
    assert_eq!(price(&at("openai/gpt-4.1-mini", "http://127.0.0.1:1/v1")), None);
    assert_eq!(price(&spec("openai/unheard-of")), None);
    let own = Some(Price { input: 1.0, output: 2.0, cached_input: None });
    assert_eq!(price(&EndpointSpec { price: own, ..spec("openai/gpt-4.1-mini") }), own);
}

#[test]
fn limits_keys_and_credentials_do_not_change_a_replys_key_and_other_headers_do() {
    let request = ChatRequest::default();
    let key = |client: &Client, spec: &EndpointSpec| {
        client.endpoint(spec).unwrap().inner.key_parts.key(&request, 0)
    };
    let base = spec("openai/m");
    let with_header = |name: &str| EndpointSpec {
        headers: BTreeMap::from([(name.to_owned(), "some-value".to_owned())]),
        ..base.clone()
    };
    let first = key(&client(), &base);
    let other_key = Client::with_variables(|_| Some("sk-another".into()));
    assert_eq!(first, key(&other_key, &base));
    let limited = EndpointSpec {
        max_in_flight: Some(1),
        requests_per_minute: Some(1),
        tokens_per_minute: Some(1),
        price: Some(Price { input: 1.0, output: 1.0, cached_input: None }),
        api_key_env: Some("OTHER_KEY".into()),
        ..base.clone()
    };
    assert_eq!(first, key(&client(), &limited));
    assert_eq!(first, key(&client(), &with_header("x-api-key")));
    assert_eq!(first, key(&client(), &with_header("Authorization")));
    assert_ne!(first, key(&client(), &with_header("anthropic-beta")));
}

#[test]
fn an_identity_is_free_of_address_and_limits() {
    let one = client().endpoint(&spec("openai/m")).unwrap().identity();
    let other = EndpointSpec { max_in_flight: Some(1), ..at("openai:m", "http://127.0.0.1:1") };
    assert_eq!(one, client().endpoint(&other).unwrap().identity());
    assert_eq!(one, json!({"provider": "openai", "model": "m", "extra_body": {}}));
}

proptest::proptest! {
    #[test]
    fn nothing_that_is_written_makes_it_panic(
        model in ".{0,30}|(openai|gemini|azure)[/:].{0,20}",
        base_url in proptest::option::of(".{0,30}|https?://.{0,20}"),
        name in ".{0,10}",
        value in ".{0,20}",
    ) {
        let headers = BTreeMap::from([(name, value)]);
        let spec = EndpointSpec { model, base_url, headers, ..EndpointSpec::default() };
        if let Ok(endpoint) = client().endpoint(&spec) {
            let printed = format!("{endpoint:?}");
            proptest::prop_assert!(!printed.contains(KEY));
        }
    }
}
