//! `shoal exec --resume FILE`: what was done before, and what is left to run.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use bytes::Bytes;
use shoal_kinds::exec::left::unpack;

use super::exec::Inputs;
use crate::args::Exec;
use crate::client::{Answer, Source};
use crate::fail::Fail;
use crate::kept::{Common, Kept, Key, hash_file, hash_of};
use crate::out_files::{self, OutNames};

pub(super) struct Resume {
    kept: Kept,
    /// Of the runs that are left, in their order.
    keys: Vec<Key>,
    /// Of these, which of all runs they are.
    runs: Vec<u64>,
    /// Answers that are there already, by run; those of files lie in their folder.
    there: BTreeMap<u64, Vec<u8>>,
    /// Runs that were done before.
    before: usize,
    /// Answers are files, of which only the hashes are kept, as of what runs leave beside them.
    are_files: bool,
}

impl Resume {
    /// Looks what is done of these inputs; gives the others.
    pub(super) fn open(
        path: &Path,
        args: &Exec,
        (wasm, shared): (&[u8], &[(String, Source)]),
        inputs: Inputs,
        beside: &OutNames,
    ) -> Result<(Resume, Inputs), Fail> {
        let common = Common::of(wasm, &words(args), shared)?;
        let kept = Kept::read(path)?;
        match (inputs, &args.output) {
            (Inputs::Files(files), Some(folder)) => {
                let out = args.out_files.as_deref().unwrap_or(folder);
                Resume::files(kept, &common, (folder, out, beside), files)
            }
            (Inputs::Lines(text, None), _) => {
                Resume::lines(kept, &common, &text, args.batch.unwrap_or(1))
            }
            (Inputs::Files(_) | Inputs::Lines(..) | Inputs::Once(_), _) => {
                Err(Fail::input("--resume needs several inputs: files, or lines with --lines"))
            }
        }
    }

    fn files(
        kept: Kept,
        common: &Common,
        (folder, out, beside): (&Path, &Path, &OutNames),
        files: Vec<(String, Source)>,
    ) -> Result<(Resume, Inputs), Fail> {
        let (mut all, mut keys, mut left) = (Vec::new(), Vec::new(), Vec::new());
        for (name, source) in files {
            let key = common.key(&name, hash_of(&source)?);
            all.push(key);
            let output = folder.join(&name);
            let is_there = match kept.get(&key) {
                Some(kept) if output.is_file() => {
                    is_there(kept, &output, &out.join(beside.out(&name)))?
                }
                Some(_) | None => false,
            };
            if !is_there {
                keys.push(key);
                left.push((name, source));
            }
        }
        let runs = (0..left.len() as u64).collect();
        let before = all.len() - left.len();
        let there = BTreeMap::new();
        let mut resume = Resume { kept, keys, runs, there, before, are_files: true };
        resume.kept.begin(&all)?;
        Ok((resume, Inputs::Files(left)))
    }

    fn lines(
        kept: Kept,
        common: &Common,
        text: &[u8],
        per_run: u32,
    ) -> Result<(Resume, Inputs), Fail> {
        let lines: Vec<_> = text.split_inclusive(|byte| *byte == b'\n').collect();
        let (mut all, mut keys, mut runs) = (Vec::new(), Vec::new(), Vec::new());
        let (mut there, mut left) = (BTreeMap::new(), Vec::new());
        let mut alike: HashMap<blake3::Hash, u64> = HashMap::new();
        for (run, lines) in (0..).zip(lines.chunks(per_run as usize)) {
            let input = lines.concat();
            let hash = blake3::hash(&input);
            // Runs over the same lines are several runs: a program may draw random numbers.
            let before = alike.entry(hash).or_default();
            let key = common.key(&before.to_string(), hash);
            *before += 1;
            all.push(key);
            match kept.get(&key) {
                Some(answer) => drop(there.insert(run, answer.to_vec())),
                None => {
                    keys.push(key);
                    runs.push(run);
                    left.extend(input);
                }
            }
        }
        let before = there.len();
        let inputs = Inputs::Lines(Bytes::from(left), Some(runs.clone()));
        let mut resume = Resume { kept, keys, runs, there, before, are_files: false };
        resume.kept.begin(&all)?;
        Ok((resume, inputs))
    }

    pub(super) fn is_nothing_left(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn before(&self) -> usize {
        self.before
    }

    /// Keeps an answer that came.
    pub(super) fn add(&mut self, answer: &Answer) -> Result<(), Fail> {
        let at = usize::try_from(answer.item).unwrap_or(usize::MAX);
        let Some(key) = self.keys.get(at) else { return Ok(()) };
        match (answer.failed, self.are_files) {
            (false, true) => self.kept.add(key, &hashes(answer)),
            (false, false) => self.kept.add(key, &answer.bytes),
            // An answer that came before it was taken back: no file has this hash.
            (true, true) => self.kept.add(key, &[]),
            (true, false) => Ok(()),
        }
    }

    /// Answers that are there and come before the one to this item; all, if there is none.
    pub(super) fn until(&mut self, item: Option<u64>) -> Vec<Vec<u8>> {
        let run = item.map(|item| {
            let run = usize::try_from(item).ok().and_then(|at| self.runs.get(at));
            run.copied().unwrap_or(u64::MAX)
        });
        let mut answers = Vec::new();
        while let Some(first) = self.there.first_entry()
            && run.is_none_or(|run| *first.key() < run)
        {
            answers.push(first.remove());
        }
        answers
    }

    /// What was kept is not to be believed.
    pub(super) fn forget(&mut self) -> Result<(), Fail> {
        self.kept.begin(&[])
    }
}

/// Of an answer's bytes, and, behind the length of its path and that, of each file that its run left.
fn hashes(answer: &Answer) -> Vec<u8> {
    let mut all = blake3::hash(&answer.bytes).as_bytes().to_vec();
    // No file has the hash of nothing: the input runs again.
    let Some(files) = unpack(&answer.files) else { return Vec::new() };
    for (path, bytes) in files {
        all.extend((path.len() as u32).to_le_bytes());
        all.extend(path.as_bytes());
        all.extend(blake3::hash(bytes).as_bytes());
    }
    all
}

/// Whether all files with these hashes are there. What has no place here is nowhere missing.
fn is_there(hashes: &[u8], output: &Path, out: &Path) -> Result<bool, Fail> {
    let Some((hash, mut rest)) = hashes.split_at_checked(blake3::OUT_LEN) else {
        return Ok(false);
    };
    if hash_file(output)?.as_bytes() != hash {
        return Ok(false);
    }
    while let Some((path, hash, after)) = first(rest) {
        if let Some(file) = out_files::place(out, path)
            && !(file.is_file() && hash_file(&file)?.as_bytes() == hash)
        {
            return Ok(false);
        }
        rest = after;
    }
    Ok(rest.is_empty())
}

fn first(hashes: &[u8]) -> Option<(&str, &[u8], &[u8])> {
    let (length, rest) = hashes.split_first_chunk::<4>()?;
    let (path, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    let (hash, rest) = rest.split_at_checked(blake3::OUT_LEN)?;
    Some((std::str::from_utf8(path).ok()?, hash, rest))
}

/// What answers depend on beside the program, the files and the input.
fn words(args: &Exec) -> Vec<Cow<'_, str>> {
    let env = args.env.iter().flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    let clock = if args.clock { "clock" } else { "" };
    let mut words: Vec<_> = args.args.iter().map(|word| word.as_str().into()).collect();
    words.extend(["env"].into_iter().chain(env).chain([clock]).map(Cow::Borrowed));
    // Which exit codes are no failure says whether there is an answer at all.
    words.push(Cow::Owned(format!("{:?}", args.ok_exit)));
    words
}
