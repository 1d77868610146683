//! Fetching results, piece by piece, going on where a broken connection stopped.

use futures_util::StreamExt;
use reqwest::{Method, StatusCode, header};
use shoal_api::{FailureJson, FailuresJson, LeftJson, LeftListJson, MissingJson};

use super::Client;
use crate::fail::Fail;
use crate::show::Bytes as BytesBar;

impl Client {
    /// Hands a job's result to `each`, in order.
    pub(crate) async fn result(
        &self,
        job: u64,
        bar: &BytesBar,
        mut each: impl FnMut(&[u8]) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        // What cannot be read there comes on the usual way, which says why if it does not.
        let (have, is_all) = self.read_result(job, bar, &mut each).await?;
        if is_all {
            return Ok(());
        }
        self.fetch_rest(&self.partial(format!("/api/v1/jobs/{job}/result")), have, bar, each).await
    }

    /// The same as an .npy file.
    pub(crate) async fn npy(
        &self,
        job: u64,
        bar: &BytesBar,
        each: impl FnMut(&[u8]) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        self.fetch(&self.partial(format!("/api/v1/jobs/{job}/result.npy")), bar, each).await
    }

    /// Of a job that failed or was cancelled, results are what is done of them, the rest filled.
    pub(crate) fn partly(&self) -> Client {
        Client { is_partial: true, ..self.clone() }
    }

    fn partial(&self, path: String) -> String {
        if self.is_partial { format!("{path}?partial=filled") } else { path }
    }

    /// The items of a job that are not computed.
    pub(crate) async fn missing(&self, job: u64) -> Result<MissingJson, Fail> {
        self.json(Method::GET, &format!("/api/v1/jobs/{job}/missing")).await
    }

    /// Where each answer of an exec job ends in its result.
    pub(crate) async fn ends(&self, job: u64) -> Result<Vec<u64>, Fail> {
        let mut bytes = Vec::new();
        let path = format!("/api/v1/jobs/{job}/ends");
        self.fetch(&path, &BytesBar::hidden(), |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .await?;
        let (ends, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() {
            return Err(Fail::world("bad_answer", "the list of answers arrived incomplete"));
        }
        Ok(ends.iter().map(|end| u64::from_le_bytes(*end)).collect())
    }

    /// The inputs on which the program of an exec job failed.
    pub(crate) async fn failures(&self, job: u64) -> Result<Vec<FailureJson>, Fail> {
        let (mut all, mut next) = (Vec::new(), Some(0));
        while let Some(from) = next {
            let path = format!("/api/v1/jobs/{job}/failures?from={from}");
            let told: FailuresJson = self.json(Method::GET, &path).await?;
            all.extend(told.failures);
            next = told.next.filter(|next| *next > from);
        }
        Ok(all)
    }

    /// What the runs of an exec job left beside their answers.
    pub(crate) async fn left(&self, job: u64) -> Result<Vec<LeftJson>, Fail> {
        let (mut all, mut next) = (Vec::new(), Some(0));
        while let Some(from) = next {
            let path = format!("/api/v1/jobs/{job}/left?from={from}");
            let told: LeftListJson = self.json(Method::GET, &path).await?;
            all.extend(told.left);
            next = told.next.filter(|next| *next > from);
        }
        Ok(all)
    }

    /// The files that the run of an item left, packed by [`shoal_kinds::exec::left`].
    pub(crate) async fn left_files(&self, job: u64, item: u64) -> Result<Vec<u8>, Fail> {
        let mut bytes = Vec::new();
        let path = format!("/api/v1/jobs/{job}/result/items/{item}/files");
        self.fetch(&path, &BytesBar::hidden(), |piece| {
            bytes.extend_from_slice(piece);
            Ok(())
        })
        .await?;
        Ok(bytes)
    }

    async fn fetch(
        &self,
        path: &str,
        bar: &BytesBar,
        each: impl FnMut(&[u8]) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        self.fetch_rest(path, 0, bar, each).await
    }

    /// The same where the first bytes are here.
    async fn fetch_rest(
        &self,
        path: &str,
        mut have: u64,
        bar: &BytesBar,
        mut each: impl FnMut(&[u8]) -> Result<(), Fail>,
    ) -> Result<(), Fail> {
        let note = |text: &str| self.note(text);
        let mut tries = self.tries(&note);
        loop {
            let before = have;
            match self.fetch_from(path, &mut have, bar, &mut each).await {
                Ok(()) => return Ok(()),
                Err(Fetch::Over(fail)) => return Err(fail),
                Err(Fetch::Broke(fail)) => {
                    if have > before {
                        tries.moved();
                    }
                    tries.again(fail).await?;
                }
            }
        }
    }

    async fn fetch_from(
        &self,
        path: &str,
        have: &mut u64,
        bar: &BytesBar,
        each: &mut impl FnMut(&[u8]) -> Result<(), Fail>,
    ) -> Result<(), Fetch> {
        let broke = |error: reqwest::Error| Fetch::Broke(self.unreachable(&error));
        let mut request = self.request(Method::GET, path);
        if *have > 0 {
            request = request.header(header::RANGE, format!("bytes={have}-"));
        }
        let answer = request.send().await.map_err(broke)?;
        self.patience.note_reached();
        match answer.status() {
            // All of it had arrived when the connection broke.
            StatusCode::RANGE_NOT_SATISFIABLE if *have > 0 => return Ok(()),
            StatusCode::OK if *have > 0 => {
                let message = "the result cannot be fetched in parts from this coordinator";
                return Err(Fetch::Over(Fail::world("bad_answer", message)));
            }
            status if status.is_success() => {}
            _ => return Err(Fetch::Broke(self.refused(answer).await)),
        }
        if let Some(size) = answer.content_length() {
            bar.expect(*have + size);
        }
        let mut pieces = answer.bytes_stream();
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(broke)?;
            each(&piece).map_err(Fetch::Over)?;
            *have += piece.len() as u64;
            bar.set(*have);
        }
        Ok(())
    }
}

enum Fetch {
    /// What arrived cannot be used.
    Over(Fail),
    Broke(Fail),
}
