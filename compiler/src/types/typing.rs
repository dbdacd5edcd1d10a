//! The types of the steps and parameters of a model, by index.

use super::env::{ListSizes, NO_SIZES};
use super::{Env, ParamTypes, StepTypes, Type, Types, Workflow};

/// The types of a model.
#[derive(Debug, Default)]
pub(crate) struct Typing {
    pub(crate) types: Types,
    /// Of the workflow's parameters, by index.
    pub(crate) params: Vec<Type>,
    /// By pipeline.
    pub(crate) pipelines: Vec<PipelineTypes>,
}

/// The types of a pipeline.
#[derive(Debug, Default)]
pub(crate) struct PipelineTypes {
    /// Of its own parameters, by index.
    pub(crate) own_params: Vec<Type>,
    /// The same, by name.
    pub(crate) params: ParamTypes,
    pub(crate) steps: StepTypes,
    /// By step: what its `output` declares, of a for-each for one item.
    pub(crate) declared: Vec<Option<Type>>,
    /// By step: the item of its for-each; any where there is none.
    pub(crate) items: Vec<Type>,
    /// By step: the lists that have an item at each `index` of its for-each.
    pub(crate) counted: Vec<Vec<String>>,
    /// By step: how many items the lists have that it reads.
    pub(crate) sizes: Vec<ListSizes>,
    /// Its value.
    pub(crate) result: Option<Type>,
}

impl PipelineTypes {
    /// What the texts of a step with these ports can read. `whole` is what the workflow's parameters are.
    pub(crate) fn step_env<'e>(&'e self, whole: &Workflow<'e>, index: usize, inputs: &'e [(String, usize)]) -> Env<'e> {
        let item = self.items.get(index).cloned().unwrap_or(Type::ANY);
        let counted = self.counted.get(index).map_or(&[][..], Vec::as_slice);
        let sizes = self.sizes.get(index).unwrap_or(NO_SIZES);
        Env { inputs, item, counted, sizes, ..self.until_env(whole) }
    }

    /// What an `until` can read.
    pub(crate) fn until_env<'e>(&'e self, whole: &Workflow<'e>) -> Env<'e> {
        Env {
            whole: *whole,
            steps: &self.steps,
            params: &self.params,
            inputs: &[],
            item: Type::ANY,
            counted: &[],
            sizes: NO_SIZES,
        }
    }
}
