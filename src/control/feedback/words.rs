//! The words of feedback, by language.

use crate::control::outcome::Reason;

/// Headings and sentences.
pub(super) struct Words {
    pub(super) task: &'static str,
    pub(super) version: &'static str,
    pub(super) best_version: &'static str,
    pub(super) generation: &'static str,
    pub(super) score: &'static str,
    pub(super) best: &'static str,
    pub(super) not_judged: &'static str,
    pub(super) not_met: &'static str,
    pub(super) found: &'static str,
    pub(super) again: &'static str,
    pub(super) contradicted: &'static str,
    pub(super) earlier: &'static str,
    pub(super) changed: &'static str,
    pub(super) score_change: &'static str,
    pub(super) better: &'static str,
    pub(super) worse: &'static str,
    pub(super) same: &'static str,
    pub(super) to_do: &'static str,
    pub(super) back_to_best: &'static str,
    pub(super) start_anew: &'static str,
    pub(super) focus: &'static str,
    pub(super) limit: &'static str,
    pub(super) instruction: &'static str,
    pub(super) phases: [&'static str; 3],
    repeated: &'static str,
    regressed: &'static str,
    stalled: &'static str,
    oscillating: &'static str,
}

impl Words {
    /// What an agent is told when a condition on progress fired.
    pub(super) fn nudge(&self, reason: Reason) -> Option<&'static str> {
        Some(match reason {
            Reason::RepeatedOutput | Reason::Cycle => self.repeated,
            Reason::Regressed | Reason::Diverged => self.regressed,
            Reason::Stalled | Reason::PlateauBelowTarget => self.stalled,
            Reason::Oscillating => self.oscillating,
            _ => return None,
        })
    }
}

pub(super) const ENGLISH: Words = Words {
    task: "Task",
    version: "Current version",
    best_version: "Best version so far",
    generation: "version",
    score: "Score",
    best: "best so far",
    not_judged: "not judged",
    not_met: "Criteria not met",
    found: "What the judges found",
    again: "said before, still open",
    contradicted: "contradicted by",
    earlier: "Earlier versions",
    changed: "What changed",
    score_change: "Score change",
    better: "better",
    worse: "worse",
    same: "no change",
    to_do: "What to do",
    back_to_best: "The last version was worse. Go on from the best version, which is shown above.",
    start_anew: "Earlier tries led nowhere: take a different approach.",
    focus: "Attend first to",
    limit: "Change at most {percent}% of the version shown; keep the rest word for word.",
    instruction: "Improve the version shown so that every finding is met. Answer with the whole new version and nothing else.",
    phases: [
        "Work on structure and completeness first.",
        "Work on content and accuracy first.",
        "Work on language and style first.",
    ],
    repeated: "The last version repeats an earlier one. Make a change that matters.",
    regressed: "The last change made it worse. Take it back and try something else.",
    stalled: "The last changes brought no gain. Try a different approach to what is still open.",
    oscillating: "The score goes up and down. Make small changes and keep what works.",
};

pub(super) const CHINESE: Words = Words {
    task: "任务",
    version: "当前版本",
    best_version: "目前最好的版本",
    generation: "版本",
    score: "得分",
    best: "目前最高分",
    not_judged: "未评分",
    not_met: "未达标的标准",
    found: "评审意见",
    again: "此前已指出，仍未解决",
    contradicted: "意见相反的评审：",
    earlier: "之前的版本",
    changed: "改动",
    score_change: "得分变化",
    better: "变好",
    worse: "变差",
    same: "没有变化",
    to_do: "接下来",
    back_to_best: "上一个版本变差了。请从上面所示的最好版本继续。",
    start_anew: "之前的尝试没有进展，请换一种思路。",
    focus: "请优先改进",
    limit: "改动不超过所示版本的 {percent}%，其余部分保持原样。",
    instruction: "请改进所示版本，解决每一条意见。只输出完整的新版本，不要输出其他内容。",
    phases: ["请先改进结构和完整性。", "请先改进内容和准确性。", "请先改进语言和风格。"],
    repeated: "上一个版本与之前的重复。请做出有意义的改动。",
    regressed: "上一次改动使结果变差。请撤回并尝试其他办法。",
    stalled: "最近的改动没有带来提升。请换一种方法解决仍未解决的问题。",
    oscillating: "得分忽高忽低。请小幅修改，保留有效的部分。",
};
