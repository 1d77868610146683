//! What the scheduler knows, in the words of the API.

use shoal_kinds::JobSpec;
use shoal_protocol::{
    Engine, Hash, JobId, Lane, LinkReport, Micros, NodeId, NodeKind, Path, PerLane, Priority, Time,
};
use shoal_scheduler::{
    CrewView, JobFailure, JobState, JobView, LeftView, MemberView, NodeView, Trust, UnitState,
};

use super::Driver;
use super::event::Counts;
use shoal_api::{
    ChangeJson, ConditionJson, CrewJson, CrewStateJson, EngineJson, FormJson, GpuJson,
    JobErrorJson, JobJson, LeftNodeJson, LinkJson, MemberJson, NodeJson, NodeKindJson,
    PriorityJson, ResultJson, ShareJson, SimJson, StateJson, TotalJson, TrustJson, TrustsJson,
    UnitJson, UnitStateJson, UnitsJson, ViaJson,
};
use shoal_kinds::form::{Form, LENGTH_BYTES};
use shoal_kinds::plan::verify_words;

/// Units shown of one job: as many as a page can draw.
const MAX_UNITS_SHOWN: usize = 2000;

impl Driver {
    pub(super) fn job_json(&mut self, now: Time, job: JobId) -> Option<JobJson> {
        let view = self.scheduler.job(now, job)?;
        if let Some(failure) = &view.failure {
            self.look_up_input(job, failure);
        }
        let spec = self.scheduler.spec(job)?;
        let state = state_json(view.state);
        let rate =
            if state == StateJson::Running { thousandth(view.milli_rate) } else { mean(&view) };
        let left = (view.items - view.items_done) as f64;
        let sim = self.sim_json(job, &view);
        let eta_seconds = match &sim {
            Some(sim) => sim.seconds_left().filter(|_| state == StateJson::Running),
            None => (state == StateJson::Running && rate > 0.0).then(|| left / rate),
        };
        let shares = view.shares.iter().map(|share| ShareJson {
            node: share.node.0,
            name: self.node_name(share.node),
            items: share.items,
            units: share.units,
        });
        Some(JobJson {
            id: job.0,
            kind: view.kind.into(),
            state,
            items: view.items,
            items_done: view.items_done,
            items_failed: view.items_failed,
            items_leased: view.items_leased,
            units_done: view.units_done,
            units_leased: view.units_leased,
            retries: view.retries,
            speculated: view.speculated,
            units_checking: view.units_checking,
            units_checked: view.checked.others,
            units_own: view.checked.own,
            units_unchecked: view.checked.nobody,
            verify: verify_words(spec.policy.verify),
            priority: priority_json(spec.policy.priority),
            weight: spec.policy.weight,
            signed_by: spec.signed.map(|signed| signed.by.to_string()),
            signed_here: spec.signed.is_some_and(|signed| signed.by == self.crews.key()),
            submitted: millis(view.submitted),
            started: view.first_lent.map(millis),
            ended: view.ended.map(millis),
            rate,
            eta_seconds,
            able_nodes: view.able_nodes,
            waits_for: self.scheduler.waiting_for(job).map(|why| why.to_string()),
            shares: shares.collect(),
            error: view.failure.as_ref().map(|failure| self.error_json(job, failure)),
            result: self.result_json(job, spec, view.items_done),
            shown: spec.work.shown(),
            sim,
            output: self.known.note_of(job).and_then(|note| note.output.clone()),
            reduced: self.known.note_of(job).and_then(|note| note.reduced.clone()),
            notes: self.known.note_of(job).map_or_else(Vec::new, |note| note.looks.clone()),
            name: view.name,
            owner: view.owner,
        })
    }

    pub(super) fn sim_json(&self, job: JobId, view: &JobView) -> Option<SimJson> {
        let sim = self.sim(job)?;
        let step = match view.state {
            JobState::Done => sim.steps,
            JobState::Running | JobState::Failed | JobState::Cancelled => {
                view.crew.as_ref().map_or(0, |crew| crew.step)
            }
        };
        Some(SimJson {
            width: sim.width,
            height: sim.height,
            steps: sim.steps,
            step,
            halo: sim.halo,
            lanes: sim.lanes,
            scalar: sim.scalar.clone(),
            reduced: view.total.as_ref().zip(sim.reduce).map(|(total, how)| TotalJson {
                how,
                step: total.step,
                values: total.numbers.iter().map(|n| n.is_finite().then_some(*n)).collect(),
            }),
            crew: view.crew.as_ref().map(|crew| self.crew_json(crew)),
        })
    }

    fn crew_json(&self, crew: &CrewView) -> CrewJson {
        CrewJson {
            epoch: crew.epoch.0,
            state: if crew.works { CrewStateJson::Working } else { CrewStateJson::Forming },
            members: crew.members.iter().map(|member| self.member_json(member)).collect(),
            spares: crew.spares,
            predicted_step_ms: (crew.predicted.0 > 0).then(|| milliseconds(crew.predicted)),
            step_ms: crew.measured.map(milliseconds),
            alone_step_ms: crew.alone.map(milliseconds),
            kept_step: crew.kept,
            changes: crew
                .changes
                .iter()
                .map(|change| ChangeJson {
                    at: change.at.0 / 1_000,
                    epoch: change.epoch.0,
                    what: change.what.to_string(),
                })
                .collect(),
        }
    }

    fn member_json(&self, member: &MemberView) -> MemberJson {
        MemberJson {
            node: member.node.0,
            name: self.node_name(member.node),
            rows: [member.rows.start, member.rows.len],
            step: member.step,
            computed_ms: milliseconds(member.computed),
            waited_ms: milliseconds(member.waited),
            guessed: member.guessed,
            corrected: member.corrected,
            links: member.links.iter().map(link_json).collect(),
        }
    }

    pub(super) fn nodes_json(&self, now: Time) -> Vec<NodeJson> {
        self.scheduler.nodes(now).into_iter().map(|view| self.node_json(view)).collect()
    }

    pub(super) fn left_json(&self) -> Vec<LeftNodeJson> {
        let left =
            self.scheduler.gone().into_iter().map(|LeftView { node, seen, trust }| LeftNodeJson {
                id: node.0,
                name: seen.name,
                kind: kind_json(seen.kind),
                trusted: seen.trusted,
                trust: trusts_json(&trust),
                units_done: seen.units,
                units_failed: seen.failed,
                last_seen: millis(seen.at),
            });
        left.collect()
    }

    fn node_json(&self, view: NodeView) -> NodeJson {
        let job_name = view.job.and_then(|job| self.scheduler.spec(job)).map(|spec| &spec.name);
        NodeJson {
            id: view.node.0,
            kind: kind_json(view.caps.kind),
            gpu: view.caps.gpu.map(|gpu| GpuJson {
                name: gpu.name,
                backend: gpu.backend,
                software: gpu.software,
                buffer_bytes: gpu.buffer_bytes,
                workgroup_invocations: gpu.workgroup_invocations,
                workgroup_bytes: gpu.workgroup_bytes,
                storage_buffers: gpu.storage_buffers,
                memory: gpu.memory,
            }),
            name: view.caps.name,
            cpu_slots: view.caps.cpu_slots,
            memory: view.caps.memory,
            threads: view.caps.threads,
            engines: view.caps.engines.into_iter().map(engine_json).collect(),
            speed: view.caps.speed,
            rate: thousandth(view.milli_rate),
            load: view.load,
            leases: view.leases,
            running: view.running,
            job: view.job.map(|job| job.0),
            job_name: job_name.cloned(),
            paused: view.paused,
            identity: self
                .conns
                .identity(view.node)
                .map_or_else(String::new, |who| Hash(who.0).to_string()),
            class: (view.caps.class != 0).then(|| format!("{:016x}", view.caps.class)),
            trusted: view.trusted,
            round_trip_ms: view.round_trip.map(milliseconds),
            pace_percent: view.pace_percent,
            condition: ConditionJson {
                visible: view.condition.visible,
                battery_percent: view.condition.battery_percent,
                charging: view.condition.charging,
                metered: view.condition.metered,
            },
            trust: trusts_json(&view.trust),
            units_done: view.units_done,
            units_failed: view.units_failed,
            gave_bytes: view.gave,
            gave_wrong: view.gave_wrong,
            joined: millis(view.joined),
        }
    }

    pub(super) fn units_json(&self, job: JobId) -> Option<UnitsJson> {
        self.scheduler.spec(job)?;
        let mut units = self.scheduler.units(job, MAX_UNITS_SHOWN + 1);
        let truncated = units.len() > MAX_UNITS_SHOWN;
        units.truncate(MAX_UNITS_SHOWN);
        let units = units.into_iter().map(|unit| {
            let (state, node) = match unit.state {
                UnitState::Waiting => (UnitStateJson::Waiting, None),
                UnitState::Leased { node, .. } => (UnitStateJson::Leased, Some(node.0)),
                UnitState::Done { node } => (UnitStateJson::Done, Some(node.0)),
            };
            UnitJson { start: unit.span.start, len: unit.span.len, state, node }
        });
        Some(UnitsJson { units: units.collect(), truncated })
    }

    pub(super) fn counts_now(&self) -> Counts {
        let swarms = self.scheduler.swarms();
        let mut counts = Counts {
            nodes: self.conns.count() as u64,
            commit_micros: self.journal.micros(),
            crews: self.crews.len(),
            disk_full: self.room.is_full(),
            blob_bytes: swarms.between,
            blob_links: swarms.links,
            blobs_known: swarms.blobs,
            ..self.counts
        };
        self.known.count(&mut counts);
        counts
    }

    fn result_json(&self, job: JobId, spec: &JobSpec, done: u64) -> ResultJson {
        let each = spec.work.form().item_bytes();
        let bytes = match each {
            Some(each) => each.saturating_mul(spec.items),
            None => self.known.bytes(job).saturating_sub(done.saturating_mul(LENGTH_BYTES)),
        };
        let bytes_left = self.known.bytes_left(job);
        ResultJson { form: form_json(&spec.work.form()), bytes, item_bytes: each, bytes_left }
    }

    pub(super) fn error_json(&self, job: JobId, failure: &JobFailure) -> JobErrorJson {
        let nodes: Vec<String> = failure.nodes.iter().map(|node| self.node_name(*node)).collect();
        let input = self.known.input(job).map(str::to_owned);
        let at = match (&input, failure.failure.item()) {
            (Some(input), _) => format!(" at {input}"),
            (None, Some(item)) => format!(" at item {item}"),
            (None, None) => format!(" in items {}", failure.span),
        };
        let on = if nodes.len() > 1 { "on nodes" } else { "on node" };
        let message = format!("{}{at}, {on} {}", failure.failure, nodes.join(" and "));
        let stderr = failure.failure.stderr().to_owned();
        JobErrorJson { message, item: failure.failure.item(), input, stderr, nodes }
    }

    /// Finds what the user calls the item at fault. Read once, because lists of files can be long.
    fn look_up_input(&mut self, job: JobId, failure: &JobFailure) {
        let Some(item) = failure.failure.item() else { return };
        if self.known.input(job).is_some() {
            return;
        }
        let Some(spec) = self.scheduler.spec(job) else { return };
        let note = self.known.note_of(job).cloned().unwrap_or_default();
        let input = spec.work.item_name(item, &note, &self.blobs);
        if let Some(input) = input {
            self.known.set_input(job, input);
        }
    }

    pub(super) fn node_name(&self, node: NodeId) -> String {
        // Of one that never did anything that counted, nothing is remembered after a restart.
        self.scheduler.node_name(node).map_or_else(|| format!("node {node}"), str::to_owned)
    }
}

fn engine_json(engine: Engine) -> EngineJson {
    EngineJson { name: engine.name, version: engine.version }
}

fn form_json(form: &Form<'_>) -> FormJson {
    match form {
        Form::Nothing => FormJson::Nothing,
        Form::Items { .. } => FormJson::Items,
        Form::Tiles(_) => FormJson::Tiles,
        Form::Answers => FormJson::Answers,
        Form::Rows(_) => FormJson::Rows,
    }
}

fn kind_json(kind: NodeKind) -> NodeKindJson {
    match kind {
        NodeKind::Native => NodeKindJson::Native,
        NodeKind::Browser => NodeKindJson::Browser,
        NodeKind::Simulated => NodeKindJson::Simulated,
    }
}

fn trusts_json(trust: &PerLane<Trust>) -> TrustsJson {
    TrustsJson { gpu: trust_json(trust[Lane::Gpu]), cpu: trust_json(trust[Lane::Cpu]) }
}

fn trust_json(trust: Trust) -> TrustJson {
    let (barred, veteran) = (trust.is_barred(), trust.is_veteran());
    TrustJson { streak: trust.streak, wrong: trust.wrong, barred, veteran }
}

fn priority_json(priority: Priority) -> PriorityJson {
    match priority {
        Priority::Batch => PriorityJson::Batch,
        Priority::Normal => PriorityJson::Normal,
        Priority::Interactive => PriorityJson::Interactive,
    }
}

fn state_json(state: JobState) -> StateJson {
    match state {
        JobState::Running => StateJson::Running,
        JobState::Done => StateJson::Done,
        JobState::Failed => StateJson::Failed,
        JobState::Cancelled => StateJson::Cancelled,
    }
}

fn link_json(link: &LinkReport) -> LinkJson {
    LinkJson {
        with: link.with.0,
        via: match link.via {
            Path::Relay => ViaJson::Relay,
            Path::Direct => ViaJson::Direct,
        },
        round_trip_ms: milliseconds(link.round_trip),
        bytes_per_second: link.bytes_per_second,
        loss: link.loss,
        relayed: link.relayed,
        direct: link.direct,
    }
}

/// Items per second over the life of an ended job.
fn mean(view: &JobView) -> f64 {
    let began = view.first_lent.unwrap_or(view.submitted);
    let micros = view.ended.map_or(0, |ended| (ended - began).0).max(1);
    view.items_done as f64 * 1e6 / micros as f64
}

fn thousandth(milli: u64) -> f64 {
    milli as f64 / 1e3
}

fn millis(time: Time) -> u64 {
    time.0 / 1_000
}

fn milliseconds(took: Micros) -> f64 {
    took.0 as f64 / 1e3
}
