//! Builds scopes, regions and nodes from the steps of a plan: loops, items and called pipelines each once.

use std::collections::BTreeMap;
use std::sync::Arc;

use swarmc_plan::{
    Agent, Body, Budget, EdgeKind, Effect, Exhausted, Iteration, Need, OnFailure, Pipeline, Plan, Retry, RoundFailure,
    Slot, Step, When,
};

use super::{
    Budgets, Edge, Graph, GraphError, Kind, Limit, LimitOf, MAX_STEPS, Node, Region, Rounds, Scope, SessionGroup,
    StepMap, StepRef, Ways,
};
use crate::core::swarm::Rules;
use crate::types::event::Content;

/// How many agents run at once where nothing is declared: they wait for a network, and take no processor.
pub(crate) const AGENTS: u32 = 16;

pub(super) fn build_graph(plan: &Plan, name: &str, task: Option<&str>, processors: u32) -> Result<Graph, GraphError> {
    let pipeline = plan.pipeline(name).ok_or_else(|| GraphError::NoPipeline(name.to_owned()))?;
    let declared = pipeline.concurrency.filter(|_| task.is_none());
    let mut build = Build {
        plan,
        scopes: Vec::new(),
        called: Vec::new(),
        regions: Vec::new(),
        lanes: Vec::new(),
        kinds: None,
        providers: BTreeMap::new(),
    };
    if declared.is_none() {
        let commands = build.add_lane(processors, LimitOf::Commands);
        build.kinds = Some((commands, build.add_lane(AGENTS, LimitOf::Agents)));
    }
    // Both lanes may be full at once.
    let concurrency = declared.map_or(processors.max(1).saturating_add(AGENTS), |declared| declared.max(1));
    let declared_by = declared.map(|_| Arc::from(pipeline.name.as_str()));
    let agents = collect_agent_budgets(plan);
    let mut graph = match task {
        Some(task) => {
            let step = pipeline.all_steps().find(|step| step.name == task);
            let alone = isolate_step(pipeline, step.ok_or_else(|| no_step(pipeline, task))?);
            build.scope_of(&alone)?;
            build.called_scopes()?;
            Graph {
                scopes: build.scopes,
                regions: build.regions,
                instances: 1,
                concurrency,
                declared_by,
                fail_fast: false,
                budgets: collect_budgets(plan, None),
                agents,
                has_budgets: false,
                on_timeout: plan.policy.on_timeout,
                lanes: build.lanes,
            }
        }
        None => {
            let steps = pipeline.steps.len() as u64 * u64::from(pipeline.parallelism.max(1));
            // Without a step, too, each instance takes its place in the state.
            if steps.max(u64::from(pipeline.parallelism)) > MAX_STEPS {
                return Err(GraphError::TooLarge { pipeline: pipeline.name.clone(), steps });
            }
            build.scope_of(pipeline)?;
            build.called_scopes()?;
            Graph {
                scopes: build.scopes,
                regions: build.regions,
                instances: pipeline.parallelism.max(1),
                concurrency,
                declared_by,
                fail_fast: pipeline.fail_fast,
                budgets: collect_budgets(plan, Some(pipeline)),
                agents,
                has_budgets: false,
                on_timeout: plan.policy.on_timeout,
                lanes: build.lanes,
            }
        }
    };
    graph.has_budgets = !graph.budgets.is_empty()
        || graph.agents.values().any(|means| means.budget.is_some())
        || graph.scopes.iter().any(|scope| scope.budget.is_some())
        || graph.regions.iter().flat_map(|region| &region.nodes).any(|node| node.budget.is_some());
    Ok(graph)
}

fn collect_agent_budgets(plan: &Plan) -> BTreeMap<Arc<str>, Budgets> {
    let means = |agent: &Agent| {
        let price = plan.provider(&agent.provider).and_then(|provider| provider.price);
        let means = Budgets { budget: agent.budget.clone(), price };
        (Arc::from(agent.name.as_str()), means)
    };
    plan.agents.iter().map(means).collect()
}

fn collect_budgets(plan: &Plan, pipeline: Option<&Pipeline>) -> Vec<(String, Budget)> {
    let workflow = plan.budget.iter().map(|budget| ("the workflow".to_owned(), budget.clone()));
    let budget = pipeline.and_then(|pipeline| Some((&pipeline.name, pipeline.budget.clone()?)));
    let pipeline = budget.into_iter().map(|(name, budget)| (format!("the pipeline `{name}`"), budget));
    workflow.chain(pipeline).collect()
}

/// A pipeline of one step, which waits for nothing.
fn isolate_step(pipeline: &Pipeline, step: &Step) -> Pipeline {
    let step = Step { needs: Vec::new(), when: None, ..step.clone() };
    Pipeline {
        result: vec![step.name.clone()],
        iteration: Iteration { max: 1, exhausted: Exhausted::Fail, ..Iteration::default() },
        steps: vec![step],
        edges: Vec::new(),
        parallelism: 1,
        concurrency: None,
        fail_fast: false,
        ..pipeline.clone()
    }
}

struct Build<'a> {
    plan: &'a Plan,
    scopes: Vec<Scope>,
    /// The pipelines behind the scopes, in order; those without a scope yet are still to be built.
    called: Vec<&'a Pipeline>,
    regions: Vec<Region>,
    lanes: Vec<Limit>,
    /// The lanes of commands and of agents, where nothing is declared.
    kinds: Option<(u32, u32)>,
    /// Those of providers with a limit, by name.
    providers: BTreeMap<&'a str, u32>,
}

/// The place of a list of steps.
#[derive(Clone, Copy)]
struct Place<'a> {
    pipeline: &'a Pipeline,
    scope: u32,
    /// The lane of the whole pipeline, where it is called and has a limit of its own.
    lane: Option<u32>,
}

impl<'a> Build<'a> {
    /// Builds the scope of the pipeline that runs, which is number 0.
    fn scope_of(&mut self, pipeline: &Pipeline) -> Result<(), GraphError> {
        self.build_scope(pipeline, None)
    }

    /// Builds the scopes of the pipelines that are called, each once.
    fn called_scopes(&mut self) -> Result<(), GraphError> {
        // The list grows while this goes on: a called pipeline may call others.
        while let Some(&pipeline) = self.called.get(self.scopes.len() - 1) {
            let of = || LimitOf::Pipeline(Arc::from(pipeline.name.as_str()));
            let lane = pipeline.concurrency.map(|limit| self.add_lane(limit, of()));
            self.build_scope(pipeline, lane)?;
        }
        Ok(())
    }

    fn build_scope(&mut self, pipeline: &Pipeline, lane: Option<u32>) -> Result<(), GraphError> {
        let place = Place { pipeline, scope: self.scopes.len() as u32, lane };
        let mut names = StepMap::default();
        let region = self.build_region(place, &pipeline.steps, &pipeline.iteration, None, &mut names)?;
        let find = |name: &String| names.get(name.as_str()).copied().ok_or_else(|| no_step(pipeline, name));
        let result = pipeline.result.iter().map(find).collect::<Result<_, _>>()?;
        let name = Arc::from(pipeline.name.as_str());
        let order = pipeline.all_steps().map(|step| Arc::from(step.name.as_str())).collect();
        let (budget, fail_fast) = (pipeline.budget.clone(), pipeline.fail_fast);
        let is_one = |spot: StepRef| {
            !matches!(self.regions[spot.region as usize].nodes[spot.step as usize].kind, Kind::Each { .. })
        };
        let ways = Ways::new(pipeline, &names, is_one);
        for way in &ways.list {
            self.regions[way.to.region as usize].nodes[way.to.step as usize].wired = true;
            let node = &mut self.regions[way.to.region as usize].nodes[way.to.step as usize];
            node.spawned |= way.kind == EdgeKind::Spawn;
        }
        for (group, number) in ways.groups.iter().zip(0..) {
            group.steps.iter().for_each(|&spot| self.assign_group(spot, number));
        }
        self.scopes.push(Scope { pipeline: name, region, result, fail_fast, budget, ways, names, order });
        Ok(())
    }

    /// Notes the group of a step, and of its items.
    fn assign_group(&mut self, spot: StepRef, group: u32) {
        let node = &mut self.regions[spot.region as usize].nodes[spot.step as usize];
        node.group = Some(group);
        if let Kind::Each { region, .. } = node.kind {
            self.regions[region as usize].nodes[0].group = Some(group);
        }
    }

    fn build_region(
        &mut self,
        place: Place<'_>,
        steps: &[Step],
        iteration: &Iteration,
        parent: Option<StepRef>,
        names: &mut StepMap<StepRef>,
    ) -> Result<u32, GraphError> {
        let index: StepMap<u32> =
            steps.iter().zip(0..).map(|(step, number)| (Arc::from(step.name.as_str()), number)).collect();
        let number = self.regions.len() as u32;
        let rounds = Rounds {
            max: iteration.max.max(1),
            until: !iteration.until.is_empty(),
            on_failure: if parent.is_some() { RoundFailure::Stop } else { iteration.on_failure },
            exhausted: iteration.exhausted,
        };
        // Ahead of its nodes: the regions inside of it come behind it, and name it as their parent.
        self.regions.push(Region { scope: place.scope, nodes: Vec::new(), rounds, parent, is_item: false, index });
        let mut nodes = Vec::with_capacity(steps.len());
        for (step, position) in steps.iter().zip(0..) {
            let spot = StepRef { region: number, step: position };
            names.insert(Arc::from(step.name.as_str()), spot);
            let find =
                |name: &str| self.regions[number as usize].find(name).ok_or_else(|| no_step(place.pipeline, name));
            let needs: Vec<Edge> =
                step.needs.iter().map(|need| Ok(make_edge(find(&need.step)?, need))).collect::<Result<_, _>>()?;
            let node = match &step.for_each {
                None => self.build_node(place, step, spot, names)?,
                Some(each) => {
                    let region = self.build_item_region(place, step, spot, names)?;
                    let kind = Kind::Each { region, parallel: each.parallel, join: each.join };
                    let one = make_node(step, kind);
                    // A for-each receives no envelopes: one would have all its items run again.
                    Node { retry: Retry::default(), agent: None, budget: None, reads_inbox: false, heeds: false, ..one }
                }
            };
            let declared = needs.iter().filter(|need| need.declared).count() as u32;
            let is_finally = needs.iter().any(|need| need.declared && need.when == When::Always);
            nodes.push(Node { needs, declared, is_finally, ..node });
        }
        // Only now: a step may need one that is declared further down.
        for step in 0..nodes.len() {
            for need in nodes[step].needs.clone() {
                nodes[need.other as usize].dependants.push(Edge { other: step as u32, ..need });
            }
        }
        for name in &iteration.handles {
            let found = self.regions[number as usize].find(name);
            nodes[found.ok_or_else(|| no_step(place.pipeline, name))? as usize].forgiven = true;
        }
        self.regions[number as usize].nodes = nodes;
        Ok(number)
    }

    /// The region of one item of a for-each: the step without its needs, its `when` and what its failure means.
    fn build_item_region(
        &mut self,
        place: Place<'_>,
        step: &Step,
        parent: StepRef,
        names: &mut StepMap<StepRef>,
    ) -> Result<u32, GraphError> {
        let number = self.regions.len() as u32;
        self.regions.push(Region {
            scope: place.scope,
            nodes: Vec::new(),
            rounds: Rounds::ONCE,
            parent: Some(parent),
            is_item: true,
            index: StepMap::from_iter([(Arc::from(step.name.as_str()), 0)]),
        });
        let spot = StepRef { region: number, step: 0 };
        let node = self.build_node(place, step, spot, names)?;
        // The join of the for-each judges what the failure of an item means.
        let node = Node {
            conditional: false,
            lenient: false,
            forgiven: true,
            default: None,
            fix: None,
            escalates: false,
            ..node
        };
        self.regions[number as usize].nodes.push(node);
        Ok(number)
    }

    fn build_node(
        &mut self,
        place: Place<'_>,
        step: &Step,
        spot: StepRef,
        names: &mut StepMap<StepRef>,
    ) -> Result<Node, GraphError> {
        let kind = match &step.body {
            Body::Stop { status, .. } => Kind::Stop(*status),
            Body::Gate(gate) => Kind::Gate(gate.on_timeout.as_ref().map(|timeout| timeout.after_ms)),
            Body::Loop(body) => {
                Kind::Loop(self.build_region(place, &body.steps, &body.iteration, Some(spot), names)?)
            }
            Body::Call(call) => Kind::Call(self.resolve_callee(&call.pipeline)?),
            Body::Value(_) | Body::Fields(_) => Kind::Value,
            Body::Prompt(_) | Body::Run(_) | Body::Swarm(_) => Kind::Task,
        };
        let own = step.concurrency.map(|limit| self.add_lane(limit, LimitOf::Step));
        let kind_lane = self.kinds.and_then(|(commands, agents)| match step.body.kind().takes_slot()? {
            Slot::Command => Some(commands),
            Slot::Agent => Some(agents),
        });
        let provider = match &step.body {
            Body::Prompt(body) => self.provider_lane(&body.agent),
            _ => None,
        };
        let swarm = match &step.body {
            Body::Swarm(call) => self.plan.swarm(&call.swarm).map(|swarm| Arc::new(Rules::new(self.plan, swarm))),
            _ => None,
        };
        Ok(Node { lanes: [own, place.lane, kind_lane, provider], swarm, ..make_node(step, kind) })
    }

    /// The number of a called pipeline's scope, which may still have to be built.
    fn resolve_callee(&mut self, name: &str) -> Result<u32, GraphError> {
        let known = self.called.iter().position(|pipeline| pipeline.name == name);
        let position = match known {
            Some(position) => position,
            None => {
                let pipeline = self.plan.pipeline(name).ok_or_else(|| GraphError::NoPipeline(name.to_owned()))?;
                self.called.push(pipeline);
                self.called.len() - 1
            }
        };
        // The pipeline that runs comes first.
        Ok(position as u32 + 1)
    }

    /// The lane of the provider that reaches an agent, where that has a limit.
    fn provider_lane(&mut self, agent: &str) -> Option<u32> {
        let provider = self.plan.provider(&self.plan.agent(agent)?.provider)?;
        let limit = provider.concurrency?;
        if let Some(&lane) = self.providers.get(provider.name.as_str()) {
            return Some(lane);
        }
        let lane = self.add_lane(limit, LimitOf::Provider(Arc::from(provider.name.as_str())));
        self.providers.insert(&provider.name, lane);
        Some(lane)
    }

    fn add_lane(&mut self, limit: u32, of: LimitOf) -> u32 {
        // A lane of 0 would never let a step start.
        self.lanes.push(Limit { most: limit.max(1), of });
        self.lanes.len() as u32 - 1
    }
}

/// A step without edges.
fn make_node(step: &Step, kind: Kind) -> Node {
    Node {
        name: Arc::from(step.name.as_str()),
        needs: Vec::new(),
        declared: 0,
        dependants: Vec::new(),
        join: step.join,
        conditional: step.when.is_some(),
        kind,
        lenient: step.on_failure == OnFailure::Skip,
        forgiven: step.output.default.is_some(),
        is_finally: false,
        default: step.output.default.clone().map(Content::Text),
        retry: step.retry.clone(),
        fix: match &step.on_failure {
            OnFailure::Fix(agent) if kind == Kind::Task => Some(Arc::from(agent.as_str())),
            _ => None,
        },
        escalates: step.on_failure == OnFailure::Escalate
            && matches!(kind, Kind::Task | Kind::Each { .. } | Kind::Call(_)),
        swarm: None,
        agent: match &step.body {
            Body::Prompt(body) => Some(Arc::from(body.agent.as_str())),
            _ => None,
        },
        budget: step.budget.clone().map(Box::new),
        talk: session_group(step),
        lanes: [None; 4],
        wired: false,
        spawned: false,
        heeds: step.says_inbox(),
        stall: step.stall,
        reads_inbox: step.reads_inbox(),
        group: None,
    }
}

fn session_group(step: &Step) -> Option<Box<SessionGroup>> {
    let (Some(session), Body::Prompt(body)) = (&step.session, &step.body) else { return None };
    Some(Box::new(SessionGroup { agent: Arc::from(body.agent.as_str()), session: Arc::from(session.as_str()) }))
}

fn make_edge(other: u32, need: &Need) -> Edge {
    Edge { other, when: need.when, declared: need.declared, handles: need.effect == Effect::Handles }
}

fn no_step(pipeline: &Pipeline, step: &str) -> GraphError {
    GraphError::NoStep { pipeline: pipeline.name.clone(), step: step.to_owned() }
}
