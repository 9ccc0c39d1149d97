//! What can be changed. In: files of product code. Out: places and the mutants at each. Must not: touch constants, `const`
//! functions (they run in the compiler), `Display` and `Debug` (words for people), patterns, or what only tests see.

use crate::modules::{File, Module, is_for_tests};
use anyhow::Result;
use proc_macro2::Span;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, Pat};

/// One change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mutant {
    /// Which of the modules asked for.
    pub(crate) module: usize,
    /// Below `src`.
    pub(crate) file: PathBuf,
    /// Where the change stands in the original.
    pub(crate) line: usize,
    /// The function around it.
    pub(crate) function: String,
    /// What stands there, in one line.
    pub(crate) original: String,
    /// What was done to it.
    pub(crate) what: String,
    /// What stands there instead; of an insertion, what is inserted, with `{on}` for the question.
    pub(crate) text: String,
}

/// How the mutants of a place get into the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One of them replaces the expression.
    Expression,
    /// They are inserted.
    Insertion,
}

/// A place with its mutants, by their numbers.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) range: Range<usize>,
    pub(crate) form: Form,
    pub(crate) mutants: Vec<usize>,
}

/// All files with their places, and all mutants.
#[derive(Debug, Default)]
pub(crate) struct Code {
    pub(crate) files: Vec<(File, Vec<Place>)>,
    pub(crate) mutants: Vec<Mutant>,
    /// Those that do not compile.
    pub(crate) left_out: std::collections::BTreeSet<usize>,
}

/// Finds what can be changed in all modules.
pub(crate) fn find_all(source: &Path, modules: &[Module]) -> Result<Code> {
    let mut code = Code::default();
    for (number, module) in modules.iter().enumerate() {
        for file in module.files(source)? {
            let places = find(&file, number, &mut code.mutants)?;
            code.files.push((file, places));
        }
    }
    Ok(code)
}

/// Finds what can be changed in a file; the mutants are added to `mutants`.
pub(crate) fn find(file: &File, module: usize, mutants: &mut Vec<Mutant>) -> Result<Vec<Place>> {
    let mut finder = Finder { file, module, mutants, functions: Vec::new(), places: BTreeMap::new() };
    finder.visit_file(&file.syntax()?);
    let places = finder.places.into_iter();
    Ok(places.map(|((start, Reverse(end)), (form, mutants))| Place { range: start..end, form, mutants }).collect())
}

struct Finder<'a> {
    file: &'a File,
    module: usize,
    mutants: &'a mut Vec<Mutant>,
    functions: Vec<String>,
    /// By their beginning, the outer before the inner.
    places: BTreeMap<(usize, Reverse<usize>), (Form, Vec<usize>)>,
}

impl Finder<'_> {
    fn text(&self, span: Span) -> &str {
        &self.file.text[span.byte_range()]
    }

    fn add(&mut self, form: Form, range: Range<usize>, shown: Span, what: String, text: String) {
        let original: Vec<&str> = self.text(shown).split_whitespace().collect();
        self.mutants.push(Mutant {
            module: self.module,
            file: self.file.path.clone(),
            line: shown.start().line,
            function: self.functions.last().cloned().unwrap_or_default(),
            original: shorten(&original.join(" ")),
            what,
            text,
        });
        let place = self.places.entry((range.start, Reverse(range.end))).or_insert_with(|| (form, Vec::new()));
        place.1.push(self.mutants.len() - 1);
    }

    fn replace(&mut self, span: Span, what: impl Into<String>, text: impl Into<String>) {
        self.add(Form::Expression, span.byte_range(), span, what.into(), text.into());
    }

    fn binary(&mut self, binary: &syn::ExprBinary) {
        let (left, right) = (self.text(binary.left.span()).to_owned(), self.text(binary.right.span()).to_owned());
        let chain = matches!(binary.op, BinOp::And(_)) && (holds_let(&binary.left) || holds_let(&binary.right));
        let (operator, others) = if chain { ("", &[][..]) } else { instead_of(&binary.op) };
        for other in others {
            let text = format!("({left}) {other} ({right})");
            self.replace(binary.span(), format!("`{operator}` made `{other}`"), text);
        }
        for side in [&*binary.left, &*binary.right] {
            // `a && let Some(b) = c` cannot become an `||`.
            if chain && !holds_let(side) {
                self.truths(side, "condition");
            }
        }
    }

    /// The condition is taken for kept, and for broken.
    fn truths(&mut self, condition: &Expr, kind: &str) {
        for truth in ["true", "false"] {
            self.replace(condition.span(), format!("{kind} made `{truth}`"), truth);
        }
    }

    fn arms(&mut self, arms: &[syn::Arm]) {
        let rest = arms.last().filter(|last| last.guard.is_none() && takes_all(&last.pat));
        for arm in arms {
            if let Some((_, guard)) = arm.guard.as_ref().filter(|(_, guard)| !holds_let(guard)) {
                self.truths(guard, "guard");
            } else if let Some(rest) = rest
                && arm.guard.is_none()
                && !takes_all(&arm.pat)
                && self.text(arm.body.span()) != self.text(rest.body.span())
            {
                let end = arm.pat.span().byte_range().end;
                self.add(
                    Form::Insertion,
                    end..end,
                    arm.pat.span(),
                    "arm taken away".to_owned(),
                    " if !{on}".to_owned(),
                );
            }
        }
    }

    /// `matches!` and `vec!`, whose words are expressions; others are texts for people.
    fn words_of_macro(&mut self, call: &syn::ExprMacro) {
        if call.mac.path.is_ident("matches") {
            let Ok(asked) = call.mac.parse_body::<Matches>() else { return };
            let text = format!("!({})", self.text(call.span()));
            self.replace(call.span(), "`matches!` negated", text);
            self.visit_expr(&asked.value);
            if let Some(guard) = &asked.guard {
                self.truths(guard, "guard");
                self.visit_expr(guard);
            }
        } else if call.mac.path.is_ident("vec") {
            let list = syn::punctuated::Punctuated::<Expr, syn::Token![,]>::parse_terminated;
            let Ok(values) = call.mac.parse_body_with(list) else { return };
            values.iter().for_each(|value| self.visit_expr(value));
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        if signature.constness.is_some() {
            return;
        }
        self.functions.push(signature.ident.to_string());
        let start = block.brace_token.span.open().byte_range().end;
        let body = self.file.text[start..block.brace_token.span.close().byte_range().start].trim();
        for value in values_of(&signature.output).iter().filter(|value| !body.is_empty() && body != **value) {
            let text = format!("if {{on}} {{ return {value}; }}");
            self.add(Form::Insertion, start..start, signature.ident.span(), format!("returns `{value}`"), text);
        }
        self.visit_block(block);
        self.functions.pop();
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !self.is_for_tests(item.span()) {
            visit::visit_item(self, item);
        }
    }

    fn visit_impl_item(&mut self, item: &'ast syn::ImplItem) {
        if !self.is_for_tests(item.span()) {
            visit::visit_impl_item(self, item);
        }
    }

    fn visit_stmt(&mut self, statement: &'ast syn::Stmt) {
        if !self.is_for_tests(statement.span()) {
            visit::visit_stmt(self, statement);
        }
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        if !self.is_for_tests(field.span()) {
            visit::visit_field_value(self, field);
        }
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last());
        if !of.is_some_and(|of| of.ident == "Display" || of.ident == "Debug") {
            visit::visit_item_impl(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(block) = &item.default {
            self.function(&item.sig, block);
        }
    }

    fn visit_expr(&mut self, expression: &'ast Expr) {
        if self.is_for_tests(expression.span()) {
            return;
        }
        match expression {
            Expr::Binary(binary) => self.binary(binary),
            Expr::Unary(syn::ExprUnary { op: syn::UnOp::Not(_), .. }) => {
                // Twice and not never: what is negated may be a reference.
                let text = format!("!({})", self.text(expression.span()));
                self.replace(expression.span(), "`!` taken away", text);
            }
            Expr::Match(matching) => self.arms(&matching.arms),
            Expr::Macro(call) => self.words_of_macro(call),
            Expr::Const(_) => return,
            Expr::Repeat(repeat) => return self.visit_expr(&repeat.expr),
            _ => {}
        }
        visit::visit_expr(self, expression);
    }

    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_item_enum(&mut self, _: &'ast syn::ItemEnum) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_pat(&mut self, _: &'ast Pat) {}
    fn visit_type(&mut self, _: &'ast syn::Type) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

impl Finder<'_> {
    /// Whether the text begins with such an attribute. Read off the text, for not every kind of node has a list of them.
    fn is_for_tests(&self, span: Span) -> bool {
        let text = self.text(span);
        if !text.starts_with('#') && !text.starts_with("//") {
            return false;
        }
        let mut lines = text.lines().map(str::trim).take_while(|line| line.starts_with('#') || line.starts_with("//"));
        lines.any(|line| {
            let alone = format!("{line} struct S;");
            syn::parse_str::<syn::ItemStruct>(&alone).is_ok_and(|item| item.attrs.iter().any(is_for_tests))
        })
    }
}

/// The words of `matches!`.
struct Matches {
    value: Expr,
    guard: Option<Expr>,
}

impl syn::parse::Parse for Matches {
    fn parse(input: syn::parse::ParseStream<'_>) -> syn::Result<Self> {
        let value = input.parse()?;
        input.parse::<syn::Token![,]>()?;
        Pat::parse_multi_with_leading_vert(input)?;
        let guarded = input.parse::<Option<syn::Token![if]>>()?.is_some();
        let guard = if guarded { Some(input.parse()?) } else { None };
        input.parse::<Option<syn::Token![,]>>()?;
        Ok(Self { value, guard })
    }
}

/// `let` as a condition, alone or in a chain.
fn holds_let(expression: &Expr) -> bool {
    match expression {
        Expr::Let(_) => true,
        Expr::Binary(binary) if matches!(binary.op, BinOp::And(_)) => {
            holds_let(&binary.left) || holds_let(&binary.right)
        }
        _ => false,
    }
}

/// A pattern that leaves nothing for a later arm.
fn takes_all(pattern: &Pat) -> bool {
    match pattern {
        Pat::Wild(_) => true,
        Pat::Ident(name) => {
            name.subpat.is_none() && name.ident.to_string().starts_with(|letter: char| letter.is_lowercase())
        }
        Pat::Tuple(tuple) => tuple.elems.iter().all(takes_all),
        _ => false,
    }
}

/// The operator and those that are put in its place: the nearest that a missing test would let through.
fn instead_of(operator: &BinOp) -> (&'static str, &'static [&'static str]) {
    match operator {
        BinOp::Lt(_) => ("<", &["<=", ">"]),
        BinOp::Le(_) => ("<=", &["<", ">="]),
        BinOp::Gt(_) => (">", &[">=", "<"]),
        BinOp::Ge(_) => (">=", &[">", "<="]),
        BinOp::Eq(_) => ("==", &["!="]),
        BinOp::Ne(_) => ("!=", &["=="]),
        BinOp::And(_) => ("&&", &["||"]),
        BinOp::Or(_) => ("||", &["&&"]),
        BinOp::Add(_) => ("+", &["-"]),
        BinOp::Sub(_) => ("-", &["+"]),
        BinOp::Mul(_) => ("*", &["/"]),
        BinOp::Div(_) => ("/", &["*"]),
        BinOp::AddAssign(_) => ("+=", &["-="]),
        BinOp::SubAssign(_) => ("-=", &["+="]),
        BinOp::BitOr(_) => ("|", &["&"]),
        BinOp::BitAnd(_) => ("&", &["|"]),
        BinOp::BitOrAssign(_) => ("|=", &["&="]),
        BinOp::BitAndAssign(_) => ("&=", &["|="]),
        _ => ("", &[]),
    }
}

/// What a function may return without having looked at anything.
fn values_of(output: &syn::ReturnType) -> &'static [&'static str] {
    let syn::ReturnType::Type(_, kind) = output else { return &["()"] };
    match &**kind {
        syn::Type::Tuple(tuple) if tuple.elems.is_empty() => &["()"],
        syn::Type::Path(path) => {
            path.path.segments.last().map_or(&[][..], |last| match last.ident.to_string().as_str() {
                "bool" => &["true", "false"],
                "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" | "Epoch" => &["0", "1"],
                "Option" => &["None"],
                "Result" if is_of_nothing(&last.arguments) => &["Ok(())"],
                "Ordering" => &["std::cmp::Ordering::Less", "std::cmp::Ordering::Equal", "std::cmp::Ordering::Greater"],
                "Vec" | "BTreeMap" | "BTreeSet" | "String" | "GtidSet" | "Millis" | "Boot" => &["Default::default()"],
                _ => &[],
            })
        }
        _ => &[],
    }
}

fn is_of_nothing(arguments: &syn::PathArguments) -> bool {
    let syn::PathArguments::AngleBracketed(list) = arguments else { return false };
    matches!(list.args.first(), Some(syn::GenericArgument::Type(syn::Type::Tuple(tuple))) if tuple.elems.is_empty())
}

/// So much of an expression is shown: enough to know it by.
const SHOWN: usize = 90;

fn shorten(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
