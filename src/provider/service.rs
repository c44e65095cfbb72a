//! The providers we know by name: where they are, how they take a key, which dialect they
//! speak. A table and nothing more; a server that is not in it is reached with `base_url`.

use super::wire::Wire;

/// How a key is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Auth {
    /// `authorization: Bearer KEY`.
    Bearer,
    /// The key alone in this header.
    Header(&'static str),
}

/// One provider.
#[derive(Debug)]
pub(super) struct Service {
    /// Its name in `provider/model`.
    pub(super) name: &'static str,
    /// Other spellings.
    pub(super) aliases: &'static [&'static str],
    /// Its dialect.
    pub(super) wire: Wire,
    /// Its address; `None` where every customer has an own one.
    pub(super) base_url: Option<&'static str>,
    /// Where its key usually is, first found first; empty where none is needed.
    pub(super) variables: &'static [&'static str],
    /// How the key is sent.
    pub(super) auth: Auth,
    /// What it calls the sampling seed.
    pub(super) seed_field: &'static str,
}

const fn openai(
    name: &'static str,
    base_url: &'static str,
    variables: &'static [&'static str],
) -> Service {
    Service {
        name,
        aliases: &[],
        wire: Wire::OpenAi,
        base_url: Some(base_url),
        variables,
        auth: Auth::Bearer,
        seed_field: "seed",
    }
}

/// All of them.
pub(super) const SERVICES: &[Service] = &[
    openai("openai", "https://api.openai.com/v1", &["OPENAI_API_KEY"]),
    Service {
        aliases: &["azure-openai", "azure_openai"],
        base_url: None,
        auth: Auth::Header("api-key"),
        ..openai("azure", "", &["AZURE_OPENAI_API_KEY", "AZURE_API_KEY"])
    },
    Service {
        name: "anthropic",
        aliases: &["claude"],
        wire: Wire::Anthropic,
        base_url: Some("https://api.anthropic.com/v1"),
        variables: &["ANTHROPIC_API_KEY"],
        auth: Auth::Header("x-api-key"),
        seed_field: "seed",
    },
    Service {
        name: "gemini",
        aliases: &["google"],
        wire: Wire::Gemini,
        base_url: Some("https://generativelanguage.googleapis.com/v1beta"),
        variables: &["GEMINI_API_KEY", "GOOGLE_API_KEY"],
        auth: Auth::Header("x-goog-api-key"),
        seed_field: "seed",
    },
    openai("openrouter", "https://openrouter.ai/api/v1", &["OPENROUTER_API_KEY"]),
    openai("groq", "https://api.groq.com/openai/v1", &["GROQ_API_KEY"]),
    Service {
        seed_field: "random_seed",
        ..openai("mistral", "https://api.mistral.ai/v1", &["MISTRAL_API_KEY"])
    },
    openai("deepseek", "https://api.deepseek.com/v1", &["DEEPSEEK_API_KEY"]),
    Service {
        aliases: &["together_ai", "togetherai"],
        ..openai("together", "https://api.together.xyz/v1", &["TOGETHER_API_KEY"])
    },
    Service {
        aliases: &["fireworks_ai"],
        ..openai("fireworks", "https://api.fireworks.ai/inference/v1", &["FIREWORKS_API_KEY"])
    },
    openai("xai", "https://api.x.ai/v1", &["XAI_API_KEY"]),
    openai("ollama", "http://localhost:11434/v1", &[]),
    Service { aliases: &["hosted_vllm"], ..openai("vllm", "http://localhost:8000/v1", &[]) },
    Service {
        aliases: &["llama.cpp", "llama-cpp", "llama_cpp"],
        ..openai("llamacpp", "http://localhost:8080/v1", &[])
    },
    Service {
        aliases: &["lm-studio", "lm_studio"],
        ..openai("lmstudio", "http://localhost:1234/v1", &[])
    },
];

/// What a user needs to know of a provider.
#[derive(Clone, Copy, Debug)]
pub struct Provider {
    /// Its name in `provider/model`.
    pub name: &'static str,
    /// Its address; `None` where every customer has an own one.
    pub base_url: Option<&'static str>,
    /// Where its key usually is, first found first; empty where none is needed.
    pub variables: &'static [&'static str],
}

/// The providers known by name.
pub fn providers() -> impl Iterator<Item = Provider> {
    SERVICES.iter().map(|service| Provider {
        name: service.name,
        base_url: service.base_url,
        variables: service.variables,
    })
}

/// The names that may stand before the model, without their other spellings.
pub fn provider_names() -> impl Iterator<Item = &'static str> {
    SERVICES.iter().map(|service| service.name)
}

impl Service {
    /// The provider of this name, whatever its case.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        SERVICES.iter().find(|service| {
            service.name.eq_ignore_ascii_case(name)
                || service.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
        })
    }

    /// The name that was likely meant.
    pub(super) fn near(name: &str) -> Option<&'static str> {
        let name = name.to_lowercase();
        SERVICES
            .iter()
            .flat_map(|service| {
                std::iter::once(&service.name)
                    .chain(service.aliases)
                    .map(|spelling| (strsim::damerau_levenshtein(&name, spelling), service.name))
            })
            .filter(|(distance, _)| *distance <= 2)
            .min()
            .map(|(_, name)| name)
    }
}
