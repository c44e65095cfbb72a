//! judge/llm.
