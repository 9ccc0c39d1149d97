//! The end of it, for people. In: verdicts, and the page that explains. Out: a table, and what survived. Must not: count as
//! explained what the page does not name by file, function, text and change.

use crate::ask::Verdict;
use crate::modules::Module;
use crate::places::{Code, Mutant};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// What is printed, and how much of it is new.
pub(crate) struct Report {
    pub(crate) text: String,
    pub(crate) unexplained: usize,
}

/// How a page names a mutant. Without its line, which the next change of the file would make untrue.
pub(crate) fn name(mutant: &Mutant) -> String {
    let Mutant { file, function, original, what, .. } = mutant;
    format!("{} {function}: `{original}`: {what}", file.display())
}

pub(crate) fn write(code: &Code, modules: &[Module], verdicts: &[Verdict], page: &str) -> Report {
    let page = page.replace("\\|", "|");
    let mut text = table(code, modules, verdicts);
    let mut unexplained = 0;
    let mut named = BTreeSet::new();
    for (mutant, verdict) in code.mutants.iter().zip(verdicts) {
        if *verdict == Verdict::NotBuilt {
            let _ = writeln!(text, "not built: line {}: {}", mutant.line, name(mutant));
        }
        let Verdict::Survived { asked } = verdict else { continue };
        let name = name(mutant);
        let known = page.contains(&name);
        unexplained += usize::from(!known);
        let tests = if *asked == 0 { "no test reaches it".to_owned() } else { format!("{asked} tests pass") };
        let word = if known { "explained" } else { "SURVIVED" };
        let _ = writeln!(text, "{word}: line {}: {name} ({tests})", mutant.line);
        named.insert(name);
    }
    // Only of modules that were asked for can be said what does not survive.
    for mutant in &code.mutants {
        let name = name(mutant);
        if page.contains(&name) && named.insert(name.clone()) {
            let _ = writeln!(text, "explained, but noticed by a test: {name}");
        }
    }
    let _ = writeln!(text, "{unexplained} survive without an explanation");
    Report { text, unexplained }
}

fn table(code: &Code, modules: &[Module], verdicts: &[Verdict]) -> String {
    let mut text =
        "| module | mutants | not built | caught by its own tests | by others of the crate | by time | survived \
                    | of these reached by no test |\n|---|---|---|---|---|---|---|---|\n"
            .to_owned();
    let mut row = |name: &str, wanted: &dyn Fn(&Mutant) -> bool| {
        let of: Vec<&Verdict> = code
            .mutants
            .iter()
            .zip(verdicts)
            .filter(|(mutant, _)| wanted(mutant))
            .map(|(_, verdict)| verdict)
            .collect();
        let count = |kind: &dyn Fn(&Verdict) -> bool| of.iter().filter(|verdict| kind(verdict)).count();
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {} | {} | {} |",
            of.len(),
            count(&|verdict| *verdict == Verdict::NotBuilt),
            count(&|verdict| *verdict == Verdict::Caught { by_own: true }),
            count(&|verdict| *verdict == Verdict::Caught { by_own: false }),
            count(&|verdict| *verdict == Verdict::ByTime),
            count(&|verdict| matches!(verdict, Verdict::Survived { .. })),
            count(&|verdict| *verdict == Verdict::Survived { asked: 0 }),
        );
    };
    for (number, module) in modules.iter().enumerate() {
        row(&module.name, &|mutant| mutant.module == number);
    }
    row("all", &|_| true);
    text
}

#[cfg(test)]
mod tests {
    use super::{name, write};
    use crate::ask::Verdict;
    use crate::modules::Module;
    use crate::places::{Code, Mutant};

    fn mutant(original: &str) -> Mutant {
        Mutant {
            module: 0,
            file: "group/door.rs".into(),
            line: 7,
            function: "opens".to_owned(),
            original: original.to_owned(),
            what: "`||` made `&&`".to_owned(),
            text: String::new(),
        }
    }

    #[test]
    fn a_survivor_is_explained_by_its_whole_name_and_by_nothing_less() {
        let code = Code { mutants: vec![mutant("a || b"), mutant("c || d")], ..Code::default() };
        let modules = [Module::new("door", "group/door")];
        let full = name(&code.mutants[0]).replace('|', "\\|");
        let (left, caught) = (Verdict::Survived { asked: 3 }, Verdict::Caught { by_own: true });
        let rows = [
            (String::new(), [left.clone(), left.clone()], 2, "SURVIVED: line 7: group/door.rs opens: `a || b`"),
            (
                format!("| {full} | why |"),
                [left.clone(), left.clone()],
                1,
                "explained: line 7: group/door.rs opens: `a || b`",
            ),
            ("| group/door.rs opens | why |".to_owned(), [left.clone(), caught.clone()], 1, "SURVIVED: line 7"),
            (format!("| {full} | why |"), [caught.clone(), caught.clone()], 0, "explained, but noticed by a test"),
            (String::new(), [Verdict::NotBuilt, caught.clone()], 0, "not built: line 7: group/door.rs opens: `a || b`"),
            (String::new(), [Verdict::ByTime, caught], 0, "| door | 2 | 0 | 1 | 0 | 1 | 0 | 0 |"),
        ];
        for (page, verdicts, unexplained, line) in rows {
            let report = write(&code, &modules, &verdicts, &page);
            assert_eq!(report.unexplained, unexplained, "{page}: {}", report.text);
            assert!(report.text.contains(line), "{page}: {}", report.text);
        }
    }
}
