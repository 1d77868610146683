//! An engine that the caller runs itself, because its answers come later: in a browser it is in another Worker. Requests
//! and answers are checked as for every engine.

use shoal_kinds::OnnxWork;
use shoal_kinds::onnx::sight::Seeking;
use shoal_protocol::Failure;

use super::engine::Trouble;
use super::model::{Model, checked, refused};
use super::sight;

/// A request that was checked and waits for an answer from elsewhere.
pub struct Asked {
    made: Option<Vec<u8>>,
    seeking: Option<Seeking>,
}

impl Asked {
    /// The packed tensors that the engine is asked; none if they are the request itself.
    pub fn take_made(&mut self) -> Option<Vec<u8>> {
        self.made.take()
    }
}

impl Model {
    /// Checks a request for an engine elsewhere. Its run must fit into the memory that is lent, but is not counted there:
    /// whoever has such an engine runs one thing at a time.
    pub fn ask(&self, work: &OnnxWork, request: &[u8]) -> Result<Asked, Failure> {
        let (seen, fits) = self.look(work, request)?;
        self.must_fit(&fits)?;
        let (made, seeking) = seen.into_made();
        Ok(Asked { made, seeking })
    }

    /// What that engine said, as it was asked for. What cannot be this model's answer is not believed.
    pub fn told(
        &self,
        work: &OnnxWork,
        asked: &Asked,
        answer: Vec<u8>,
    ) -> Result<Vec<u8>, Failure> {
        let answer = checked(work, Ok(answer)).map_err(|trouble| match trouble {
            Trouble::Refused(message) => refused(message),
            Trouble::Broken(message) => Failure::DeviceLost { message },
        })?;
        match &asked.seeking {
            Some(seeking) => sight::found(seeking, &answer).map_err(refused),
            None => Ok(answer),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Threads, work_of};
    use super::*;
    use shoal_kinds::onnx::tensor::pack;
    use shoal_kinds::onnx::{Element, Head, Tensor};

    #[test]
    fn an_answer_from_elsewhere_counts_only_if_it_can_be_the_models() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/models/edges.onnx");
        let file = std::fs::read(path).expect("the example");
        let work = work_of(&file).expect("a model");
        let model = Model::load(file, &work, &Threads::new(1)).expect("it loads");
        let dims = vec![1, 3, 4, 4];
        let head = Head { name: work.inputs[0].name.clone(), element: Element::F32, dims };
        let request = pack(&[Tensor { head, bytes: &[0; 4 * 48] }]);

        let mut asked = model.ask(&work, &request).expect("a request");
        assert_eq!(asked.take_made(), None, "plain tensors are asked as they came");
        model.rest();
        let right = model.run(&work, &request).expect("an answer, though the engine rested");
        assert_eq!(model.told(&work, &asked, right.clone()), Ok(right));

        let head = Head { name: "z".into(), element: Element::F32, dims: vec![1] };
        for wrong in [pack(&[Tensor { head, bytes: &[0; 4] }]), b"no tensors".to_vec()] {
            let lost = model.told(&work, &asked, wrong).expect_err("not this model's");
            assert!(matches!(lost, Failure::DeviceLost { .. }), "{lost}");
        }
        model.ask(&work, b"no tensors").map(drop).expect_err("refused before anybody is asked");
    }
}
