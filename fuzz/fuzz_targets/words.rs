//! What strangers say of a model's words: vocabularies and chat templates in a file's head, forms that answers must have,
//! requests, and what is asked of nodes and said by them.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use shoal_gguf::Head;
use shoal_text::{
    Asked, ChatRequest, CompletionRequest, EmbeddingRequest, Form, Json, Keeper, Listed, Spelling,
    Texts, Tokenizer, Vocabulary, Words,
};

/// Tokens of an answer that are tried.
const STEPS: u32 = 300;
/// The token that ends an answer: behind those of all bytes.
const END: u32 = 256;
const TEXTS: [&str; 4] =
    ["Hello, wörld!", " a  b\n\n12345's", "<s></s><|im_end|>", "\u{fdd0}é\u{301}한👍🏽"];

fuzz_target!(|bytes: &[u8]| {
    let Some((mode, rest)) = bytes.split_first() else { return };
    match mode % 4 {
        0 => file(rest),
        1 => schema(rest),
        2 => requests(rest),
        _ => between(rest),
    }
});

/// A head whose words can be read can be written with.
fn file(bytes: &[u8]) {
    let Ok(head) = Head::read(bytes.to_vec(), 1 << 40) else { return };
    let texts = match Texts::read(&head) {
        Ok(texts) => texts,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let count = texts.tokenizer.words().len();
    let named = head.text("general.name").ok().flatten();
    for text in TEXTS.into_iter().chain(named) {
        let ways = [texts.tokenizer.encode(text), texts.tokenizer.encode_rendered(text)];
        for tokens in ways.into_iter().flatten() {
            assert!(tokens.iter().all(|token| (*token as usize) < count), "a token that is none");
            tokens.iter().for_each(|token| drop(texts.tokenizer.bytes(*token)));
        }
    }
}

/// An answer that is kept to a form gets on at every place, and wherever it may end it is JSON.
fn schema(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Some(json) = Json::read(text) else { return };
    let form = match Form::of_schema(&json) {
        Ok(form) => form,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut keeper = match Keeper::new(&form, spelling(), &[END]) {
        Ok(keeper) => keeper,
        Err(error) => panic!("a form that was read before: {error}"),
    };
    let (mut answer, mut dice) =
        (Vec::new(), bytes.iter().fold(7u64, |sum, byte| sum * 31 % 65_521 + u64::from(*byte)));
    for _ in 0..STEPS {
        let mask = keeper.allowed();
        let may: Vec<u32> = (0..=END).filter(|token| mask[*token as usize]).collect();
        assert!(!may.is_empty(), "nothing may follow {:?}", String::from_utf8_lossy(&answer));
        if mask[END as usize] {
            let read: Result<serde_json::Value, _> = serde_json::from_slice(&answer);
            assert!(read.is_ok(), "this is no JSON: {:?}", String::from_utf8_lossy(&answer));
        }
        dice = dice * 6_364_136_223 % 2_147_483_647;
        let token = may[dice as usize % may.len()];
        if token == END {
            return;
        }
        answer.push(token as u8);
        keeper.said(token);
    }
}

/// A token for each byte, and an end.
fn spelling() -> Arc<Spelling> {
    static SPELLING: OnceLock<Arc<Spelling>> = OnceLock::new();
    let make = || {
        let bytes = (0..END).map(|byte| format!("<0x{byte:02X}>").into());
        let listed = Listed {
            model: "llama".into(),
            tokens: bytes.chain(["</s>".into()]).collect(),
            sorts: (0..END).map(|_| 6).chain([3]).collect(),
            scores: vec![0.0; END as usize + 1],
            eos: Some(END),
            ..Listed::default()
        };
        match Vocabulary::new(listed) {
            Ok(words) => Arc::new(Spelling::new(&Tokenizer::new(words))),
            Err(error) => panic!("words: {error}"),
        }
    };
    SPELLING.get_or_init(make).clone()
}

fn requests(body: &[u8]) {
    if let Ok(request) = ChatRequest::read(body) {
        let _ = (request.messages(), request.settings(7));
    }
    if let Ok(request) = CompletionRequest::read(body) {
        let _ = (request.prompts(), request.settings(7));
    }
    if let Ok(request) = EmbeddingRequest::read(body) {
        let _ = (request.texts(), request.as_base64());
    }
}

/// What is asked of a node, and what a node says.
fn between(bytes: &[u8]) {
    if let Some(asked) = Asked::unpack(bytes) {
        let again = Asked::unpack(&asked.ask.pack());
        assert_eq!(again.map(|again| again.ask.prompt), Some(asked.ask.prompt));
    }
    let mut words = Words::default();
    for part in bytes.chunks(7) {
        words.push(part);
        while let Ok(Some(_)) = words.take() {}
    }
}
