//! Fetches a file from the web, going on where an earlier try stopped.

use std::time::Duration;

use futures_util::StreamExt;
use reqwest::header::{self, HeaderMap, HeaderName};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Response, StatusCode, Url};

use super::head::{Watch, Wrong};
use super::part::{Note, Part};
use super::{progress, shown};
use crate::client::innermost;
use crate::fail::Fail;
use crate::show;

/// Tries in a row that bring nothing before the download gives up.
const MAX_TRIES: u32 = 6;
const RETRY_AFTER: Duration = Duration::from_millis(500);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(20);
/// A server that says nothing for so long has forgotten us.
const SILENCE: Duration = Duration::from_secs(60);
/// Stores of models send people on once or twice.
const MOST_REDIRECTS: usize = 10;

pub(super) struct Download {
    http: reqwest::Client,
    url: Url,
    part: Part,
    watch: Watch,
    /// The hash is checked at the end: a file whose server names no version may be gone on with as well.
    hashed: bool,
    bar: show::Bytes,
    quiet: bool,
}

enum Stop {
    Wrong(Wrong),
    /// Another try may help.
    Broke(String),
}

impl From<Wrong> for Stop {
    fn from(wrong: Wrong) -> Stop {
        Stop::Wrong(wrong)
    }
}

impl From<Fail> for Stop {
    fn from(fail: Fail) -> Stop {
        Stop::Wrong(Wrong::World(fail))
    }
}

impl Download {
    pub(super) fn new(url: &Url, part: Part, hashed: bool, quiet: bool) -> Result<Download, Fail> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(SILENCE)
            .redirect(Policy::custom(redirected))
            .user_agent(concat!("shoal/", env!("CARGO_PKG_VERSION")))
            .build();
        let http = http.map_err(|error| {
            Fail::world("client", format!("cannot start the HTTP client: {error}"))
        })?;
        let watch = Watch::new(shown(url));
        let bar = show::Bytes::hidden();
        Ok(Download { http, url: url.clone(), part, watch, hashed, bar, quiet })
    }

    pub(super) fn part(self) -> Part {
        self.part
    }

    pub(super) async fn run(&mut self) -> Result<(), Wrong> {
        let mut tries = 0;
        let outcome = loop {
            let before = self.part.have;
            match self.once().await {
                Ok(()) => break Ok(()),
                Err(Stop::Wrong(wrong)) => break Err(wrong),
                Err(Stop::Broke(reason)) => {
                    tries = if self.part.have > before { 1 } else { tries + 1 };
                    if tries >= MAX_TRIES {
                        break Err(Wrong::World(self.gave_up(&reason)));
                    }
                    tokio::time::sleep(RETRY_AFTER * tries).await;
                }
            }
        };
        self.bar.clear();
        outcome
    }

    async fn once(&mut self) -> Result<(), Stop> {
        let answer = self.ask().await?;
        match answer.status() {
            StatusCode::PARTIAL_CONTENT => self.goes_on(answer.headers())?,
            StatusCode::RANGE_NOT_SATISFIABLE if self.part.have > 0 => {
                if size_in(answer.headers()) == Some(self.part.have) {
                    return Ok(self.watch.look(&self.part.path, self.here(), true)?);
                }
                self.part.begin(Note::default())?;
                return Err(Stop::Broke("the file on the server has changed".into()));
            }
            status if status.is_success() => self.begins(&answer)?,
            status => return Err(self.refused(status)),
        }
        if self.part.note.total.is_some_and(|total| total > self.watch.most()) {
            return Err(self.watch.too_large(self.part.note.total.unwrap_or(0)).into());
        }
        self.bar.clear();
        let shown = if self.quiet { 0 } else { self.part.note.total.unwrap_or(0) };
        self.bar = show::Bytes::new("downloading", shown);
        self.take(answer).await
    }

    async fn ask(&mut self) -> Result<Response, Stop> {
        let mut request = self.http.get(self.url.clone());
        request = request.header(header::ACCEPT_ENCODING, "identity");
        let may_go_on = self.hashed || self.part.note.validator.is_some();
        if self.part.have > 0 && may_go_on {
            request = request.header(header::RANGE, format!("bytes={}-", self.part.have));
            if let Some(validator) = &self.part.note.validator {
                request = request.header(header::IF_RANGE, validator);
            }
        }
        let have = self.part.have;
        request.send().await.map_err(|error| {
            let reason = innermost(&error);
            if error.is_connect() && have == 0 || error.is_redirect() || error.is_builder() {
                let message = format!("cannot fetch {}: {reason}", self.url());
                return Fail::world("unreachable", message).into();
            }
            Stop::Broke(reason)
        })
    }

    /// The server sends what is missing.
    fn goes_on(&mut self, headers: &HeaderMap) -> Result<(), Stop> {
        let from = text_of(headers, &header::CONTENT_RANGE)
            .and_then(|range| range.strip_prefix("bytes "))
            .and_then(|range| range.split_once('-'))
            .and_then(|(from, _)| from.trim().parse().ok());
        let total = size_in(headers);
        let known = self.part.note.total;
        if from == Some(self.part.have) && (known.is_none() || total.is_none() || known == total) {
            return Ok(());
        }
        self.part.begin(Note::default())?;
        Err(Stop::Broke("the server did not send the part of the file that Shoal asked for".into()))
    }

    /// The server sends everything.
    fn begins(&mut self, answer: &Response) -> Result<(), Stop> {
        let headers = answer.headers();
        if let Some(encoding) = text_of(headers, &header::CONTENT_ENCODING)
            && encoding != "identity"
        {
            let message = format!(
                "{} arrives compressed ({encoding}), although Shoal did not ask for that",
                self.url()
            );
            return Err(Fail::world("bad_answer", message).into());
        }
        let kind = text_of(headers, &header::CONTENT_TYPE).unwrap_or_default();
        if kind.starts_with("text/html") {
            let message = format!(
                "{} is a web page, not a model: expected the address of the file itself",
                self.url()
            );
            return Err(Wrong::File(Fail::Input { code: "bad_model".into(), message }).into());
        }
        let strong = text_of(headers, &header::ETAG).filter(|etag| !etag.starts_with("W/"));
        let validator = strong.or_else(|| text_of(headers, &header::LAST_MODIFIED));
        let validator = validator.map(str::to_owned);
        Ok(self.part.begin(Note { validator, total: answer.content_length() })?)
    }

    async fn take(&mut self, answer: Response) -> Result<(), Stop> {
        let mut pieces = answer.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|error| Stop::Broke(innermost(&error)))?;
            self.part.append(&piece)?;
            if self.part.have > self.watch.most() {
                return Err(self.watch.too_large(self.part.have).into());
            }
            self.watch.look(&self.part.path, self.here(), false)?;
            self.bar.set(self.part.have);
        }
        match self.part.note.total {
            Some(total) if self.part.have < total => Err(Stop::Broke("it ended early".into())),
            _ => Ok(self.watch.look(&self.part.path, self.here(), true)?),
        }
    }

    fn here(&self) -> (u64, Option<u64>) {
        (self.part.have, self.part.note.total)
    }

    fn refused(&self, status: StatusCode) -> Stop {
        let passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS];
        if status.is_server_error() || passing.contains(&status) {
            return Stop::Broke(format!("the server answered {status}"));
        }
        let hint = match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                ": it may need a login; fetch the file yourself and add it"
            }
            StatusCode::NOT_FOUND | StatusCode::GONE => ": is the address right?",
            _ => "",
        };
        let message = format!("{}: the server answered {status}{hint}", self.url());
        Stop::Wrong(Wrong::World(Fail::Input { code: "cannot_fetch".into(), message }))
    }

    fn gave_up(&self, reason: &str) -> Fail {
        let (url, (have, total)) = (self.url(), self.here());
        let message = match have {
            0 => format!("cannot fetch {url}: {reason}"),
            _ => format!(
                "only a part of {url} arrived, {}: {reason}; the same command continues from there",
                progress(have, total)
            ),
        };
        Fail::world("connection_lost", message)
    }

    fn url(&self) -> String {
        shown(&self.url)
    }
}

/// Nobody is led from https to http.
fn redirected(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let was_sealed = attempt.previous().iter().any(|url| url.scheme() == "https");
    if was_sealed && attempt.url().scheme() != "https" {
        return attempt.error("the server leads from https to an address without it");
    }
    match attempt.previous().len() {
        0..=MOST_REDIRECTS => attempt.follow(),
        _ => attempt.error("the server leads from one address to the next without an end"),
    }
}

/// The size of the whole file, in a `Content-Range`.
fn size_in(headers: &HeaderMap) -> Option<u64> {
    let (_, size) = text_of(headers, &header::CONTENT_RANGE)?.rsplit_once('/')?;
    size.trim().parse().ok()
}

fn text_of<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}
