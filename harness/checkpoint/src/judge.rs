//! What a config declares against what the tensors are.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use gguf_assay_format::printable;
use serde_json::Value as Json;

use crate::checkpoint::Checkpoint;
use crate::config::{Declared, Fields, declarations, quote};
use crate::experts::Experts;
use crate::files::Files;
use crate::finding::Finding;
use crate::fit::{Fit, Shapes, Sizes, Weight, fit, is_of, knows, shapes, shown, sizes_that_fit};
use crate::method::{Dim, Layout, Method, Presence, Term};
use crate::model;
use crate::module::{Module, kind, modules};
use crate::rule;
use crate::scheme::{Declaration, Group, Lookup, MOST_PATTERNS, Pattern, Scheme};
use crate::values::{self, Stated};

/// What is looked at.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether values are looked at as well: zero points, `g_idx`, scales, stated shapes. A little of
    /// each tensor is read for that.
    pub values: bool,
    /// Over how many ranks the weights are to be split, if that is asked.
    pub tp: Option<u64>,
}

impl Default for Options {
    fn default() -> Options {
        Options { values: true, tp: None }
    }
}

/// What a checkpoint is, and everything that is wrong with it.
#[derive(Debug)]
pub struct Judgement {
    /// The method that its config declares, if it is known.
    pub method: Option<&'static Method>,
    /// Where the declaration stands: the file, and the field within.
    pub declared_in: Option<(String, String)>,
    /// What is declared for modules that nothing else is declared for.
    pub scheme: Option<Scheme>,
    /// The quantized modules, by name.
    pub modules: Vec<QuantizedModule>,
    /// How many modules are plain.
    pub plain: usize,
    /// The experts, if there are any.
    pub experts: Option<Experts>,
    /// What is wrong, and notes.
    pub findings: Vec<Finding>,
}

impl Judgement {
    /// Whether nothing is wrong; notes do not count.
    pub fn is_accepted(&self) -> bool {
        !self.findings.iter().any(Finding::is_fault)
    }
}

/// A module whose weight is made of codes.
#[derive(Clone, Debug)]
pub struct QuantizedModule {
    /// Its name.
    pub name: String,
    /// How it is laid down, as far as its tensors tell.
    pub layout: &'static Layout,
    /// The width of a code, as its tensors have it.
    pub bits: u64,
    /// How many codes share a scale, likewise.
    pub group: Group,
    /// The rows and columns of a block, likewise.
    pub block: Option<(u64, u64)>,
    /// Whether zero points are all the same, as declared.
    pub symmetric: Option<bool>,
    /// Whether GPTQ's zero points are declared to be stored as they are.
    pub zero_is_plain: bool,
    /// The rows of the weight.
    pub out_features: Option<u64>,
    /// Its columns.
    pub in_features: Option<u64>,
    /// How many experts there are in one tensor.
    pub experts: Option<u64>,
    /// Its tensors: suffix and name.
    pub tensors: Vec<(&'static str, String)>,
}

/// Judges a checkpoint.
pub fn judge<F: Files>(checkpoint: &Checkpoint<F>, options: &Options) -> Judgement {
    let mut findings = checkpoint.findings.clone();
    let all = declarations(checkpoint);
    let mut judgement = Judgement {
        method: None,
        declared_in: None,
        scheme: None,
        modules: Vec::new(),
        plain: 0,
        experts: None,
        findings: Vec::new(),
    };
    let modules = modules(checkpoint);
    let mut declaration = None;
    if let Some(declared) = all.first() {
        judgement.declared_in = Some((declared.file.to_owned(), declared.path.clone()));
        judgement.method = method(declared, &mut findings);
        if let Some(method) = judgement.method {
            let mut fields = Fields::read(declared, method, &mut findings);
            let found = (method.declare)(&mut fields);
            judgement.scheme = found.scheme.clone();
            declaration = Some((declared, found));
        }
        agree(declared, all.get(1..).unwrap_or_default(), &mut findings);
    }
    let mut judge = Judge { checkpoint, options, findings, groups: HashMap::new() };
    match declaration {
        Some((declared, declaration)) => {
            judge.modules(declared, &declaration, &modules, &mut judgement);
            judge.entries(declared, &declaration, &modules);
        }
        None => judge.undeclared(&modules, &mut judgement, all.is_empty()),
    }
    let found = model::judge(checkpoint, &modules, &judgement, options, &judge.findings);
    judgement.experts = found.0;
    found.1.into_iter().for_each(|finding| judge.push(finding));
    judgement.findings = judge.findings;
    judgement
}

/// The method of a declaration.
fn method(declared: &Declared<'_>, findings: &mut Vec<Finding>) -> Option<&'static Method> {
    let known = || {
        let names: Vec<&str> = Method::ALL.iter().map(|method| method.name).collect();
        names.join(", ")
    };
    if declared.file == "config.json" && declared.path.contains('.') {
        let finding = Finding::new(
            &rule::METHOD_023,
            declared.path.clone(),
            "quantization_config at the top",
        );
        findings.push(finding.in_file(declared.file).of_field(declared.path.clone()));
    }
    let field = declared.field("quant_method");
    let Some(name) = declared.method else {
        let finding = Finding::new(&rule::METHOD_001, "no quant_method", known());
        findings.push(finding.in_file(declared.file).of_field(field));
        return None;
    };
    if name == "torchao" {
        let finding = Finding::new(&rule::METHOD_029, "torchao", known());
        findings.push(finding.in_file(declared.file).of_field(field));
        return None;
    }
    let name = name.strip_prefix("intel/").unwrap_or(name);
    let method = Method::find(name);
    if method.is_none() {
        let name = printable(name, 80);
        let finding = Finding::new(&rule::METHOD_001, format!("\"{name}\""), known());
        findings.push(finding.in_file(declared.file).of_field(field));
    }
    method
}

/// Fields that other declarations have, too, and say otherwise.
fn agree(first: &Declared<'_>, others: &[Declared<'_>], findings: &mut Vec<Finding>) {
    let names = [
        ("bits", "w_bit"),
        ("group_size", "q_group_size"),
        ("quant_method", "quant_method"),
        ("sym", "sym"),
        ("desc_act", "desc_act"),
        ("checkpoint_format", "format"),
        ("version", "version"),
        ("zero_point", "zero_point"),
        ("weight_block_size", "weight_block_size"),
        ("quant_algo", "quant_algo"),
    ];
    let value = |declared: &Declared<'_>, name: &str, alias: &str| -> Option<Json> {
        let value = declared.object.get(name).or_else(|| declared.object.get(alias))?;
        Some(match value {
            Json::String(text) => text.to_ascii_lowercase().into(),
            other => other.clone(),
        })
    };
    for other in others {
        for (name, alias) in names {
            let (Some(one), Some(two)) = (value(first, name, alias), value(other, name, alias))
            else {
                continue;
            };
            if one != two {
                let expected = format!("{}, as {} says", quote(&one), first.file);
                let finding = Finding::new(&rule::METHOD_005, quote(&two), expected);
                findings.push(finding.in_file(other.file).of_field(other.field(name)));
            }
        }
    }
}

/// A guess at why the shapes of a module do not follow.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Explanation {
    /// One tensor is transposed.
    Transposed(&'static str),
    /// The width of codes is another.
    Bits(u64),
    /// As many share a scale.
    Group(String),
    /// Both are others.
    Both(u64, String),
    /// The layout is another.
    Layout(&'static str),
}

/// How many different modules are explained, at most.
const EXPLAINED: usize = 256;

/// A module that does not fit.
struct Misfit<'m, 'a> {
    module: &'m Module<'a>,
    layout: &'static Layout,
    scheme: &'m Scheme,
    /// What is declared, or stated in a tensor.
    sizes: Sizes,
    /// The lengths that a tensor states.
    known: Weight,
    fit: Fit,
    guesses: Vec<Explanation>,
}

struct Judge<'c, F> {
    checkpoint: &'c Checkpoint<F>,
    options: &'c Options,
    findings: Vec<Finding>,
    /// Findings that are the same but for the module.
    groups: HashMap<Said, usize>,
}

/// What a finding says, whatever module it is about.
#[derive(PartialEq, Eq, Hash)]
struct Said {
    rule: &'static str,
    found: String,
    expected: String,
    field: Option<String>,
    /// What the tensor's name has behind the module's.
    suffix: String,
}

impl<F: Files> Judge<'_, F> {
    /// Adds a finding about a module, or the module to a finding that says the same.
    fn push(&mut self, finding: Finding) {
        if let Some(module) = &finding.module {
            let tensor = finding.tensor.as_deref().unwrap_or(module);
            let key = Said {
                rule: finding.rule.id,
                found: finding.found.clone(),
                expected: finding.expected.clone(),
                field: finding.field.clone(),
                suffix: tensor.strip_prefix(module.as_str()).unwrap_or(tensor).to_owned(),
            };
            if let Some(first) = self.groups.get(&key).and_then(|at| self.findings.get_mut(*at)) {
                first.others.push(module.clone());
                return;
            }
            self.groups.insert(key, self.findings.len());
        }
        self.findings.push(finding);
    }

    fn modules<'m, 'a>(
        &mut self,
        declared: &Declared<'_>,
        declaration: &'m Declaration,
        modules: &'m [Module<'a>],
        judgement: &mut Judgement,
    ) {
        let mut misfits = Vec::new();
        let mut kinds: BTreeMap<String, [Vec<&str>; 2]> = BTreeMap::new();
        let lookup = Lookup::of(declaration);
        if let Some(entry) = lookup.left_out {
            let finding = Finding::new(
                &rule::METHOD_029,
                format!("more than {MOST_PATTERNS} entries that are no names"),
                "fewer, to look at those from here on",
            );
            self.push(finding.in_file(declared.file).of_field(declared.field(&entry.field)));
        }
        for module in modules {
            let entry = lookup.entry(module.name);
            let scheme = lookup.scheme(entry);
            let quantized = module.is_quantized();
            if quantized || module.is_linear() {
                let kinds = kinds.entry(kind(module.name)).or_default();
                if let Some(list) = kinds.get_mut(usize::from(quantized)) {
                    list.push(module.name);
                }
            }
            let field = entry.map(|entry| declared.field(&entry.field));
            match (scheme, quantized) {
                // Of a method whose tensors are not looked into.
                (None, true)
                    if entry.is_none()
                        && judgement.method.is_some_and(|method| method.layouts.is_empty()) => {}
                (None, true) => {
                    let found = match guess(module) {
                        Some((layout, ..)) => format!("its tensors are those of {}", layout.name),
                        None => "its tensors are packed".into(),
                    };
                    let expected = match entry {
                        Some(entry) => format!(
                            "a plain weight: the entry \"{}\" leaves it out",
                            printable(&entry.text, 80)
                        ),
                        None => "a plain weight: no entry includes it".into(),
                    };
                    let finding = Finding::new(&rule::METHOD_019, found, expected);
                    let mut finding = finding.in_file(declared.file).of_module(module.name);
                    finding.field = field;
                    self.push(finding);
                }
                (Some(_), false)
                    if module.is_linear()
                        && (declaration.is_complete
                            || entry.is_some_and(|entry| {
                                matches!(entry.pattern, Pattern::Name(_))
                            })) =>
                {
                    let expected = match entry {
                        Some(entry) => format!(
                            "quantized: \"{}\" includes it, and nothing leaves it out",
                            printable(&entry.text, 80)
                        ),
                        None => "quantized".into(),
                    };
                    let finding = Finding::new(&rule::METHOD_020, "a plain weight", expected);
                    let mut finding = finding.in_file(declared.file).of_module(module.name);
                    finding.field = field;
                    self.push(finding);
                }
                (Some(scheme), true) => match scheme.layouts.as_slice() {
                    [] => {}
                    layouts => {
                        if let Some(misfit) = self.module(module, layouts, scheme, judgement) {
                            misfits.push(misfit);
                        }
                    }
                },
                _ => judgement.plain = judgement.plain.saturating_add(1),
            }
        }
        self.explain(declared, misfits);
        if !declaration.is_complete {
            self.alike(&lookup, &kinds);
        }
        if judgement.modules.is_empty()
            && !modules.is_empty()
            && !self.findings.iter().any(Finding::is_fault)
            && declaration.schemes().all(|scheme| !scheme.layouts.is_empty())
            && judgement.method.is_some_and(|method| !method.layouts.is_empty())
        {
            let finding = Finding::new(
                &rule::METHOD_020,
                "no module is quantized",
                "at least one, since a method is declared",
            );
            self.push(finding.in_file(declared.file).of_field(declared.path.clone()));
        }
    }

    /// Judges the tensors of a module; returns it if its shapes do not follow.
    fn module<'m, 'a>(
        &mut self,
        module: &'m Module<'a>,
        layouts: &[&'static Layout],
        scheme: &'m Scheme,
        judgement: &mut Judgement,
    ) -> Option<Misfit<'m, 'a>> {
        let mut sizes = Sizes::of(scheme);
        let shapes = shapes(module);
        let stated = self.stated(module);
        if let Some(size) = stated.block_size {
            sizes.group = Group::Size(size);
        }
        let known = stated.weight;
        // The layout that misses least.
        let faults = |layout: &&'static Layout| {
            let missing = layout.tensors.iter().filter(|rule| {
                rule.presence == Presence::Always && module.tensor(rule.suffix).is_none()
            });
            let strange = module.tensors.keys().filter(|suffix| !knows(layout, suffix));
            missing.count().saturating_add(strange.count())
        };
        let layout = match layouts {
            [one] => *one,
            several => several.iter().copied().min_by_key(|layout| {
                (faults(layout), fit(layout, sizes, &shapes, known).mismatches.len())
            })?,
        };
        let found = fit(layout, sizes, &shapes, known);
        let mut guesses = Vec::new();
        if faults(&layout) > 0 || !is_of(layout, module) {
            // All tensors of another layout are better than some of this one.
            let others = guess(module).filter(|(other, ..)| *other != layout);
            guesses.extend(others.map(|(other, ..)| Explanation::Layout(other.name)));
        }
        if guesses.is_empty() {
            self.tensors(module, layout, scheme);
        }
        // All fits, but not what is stated, and that does with another width.
        if found.mismatches.is_empty()
            && stated.disagrees(found.weight)
            && let Some((other, _)) = sizes_that_fit(layout, sizes, &shapes, known)
            && other.group == sizes.group
        {
            guesses.push(Explanation::Bits(other.bits));
        }
        if found.mismatches.is_empty() && guesses.is_empty() {
            self.as_stated(module, &stated, found.weight);
            let quantized = QuantizedModule::new(module, layout, sizes, scheme, found.weight);
            self.widths(&quantized);
            if self.options.values {
                values::judge(self.checkpoint, &quantized, scheme, &mut |finding| {
                    self.push(finding);
                });
            }
            judgement.modules.push(quantized);
            return None;
        }
        if let Some((layout, sizes, weight)) = guess(module) {
            let quantized = QuantizedModule::new(module, layout, sizes, scheme, weight);
            judgement.modules.push(quantized);
        }
        Some(Misfit { module, layout, scheme, sizes, known, fit: found, guesses })
    }

    /// What the file states of a module, if values are looked at.
    fn stated(&self, module: &Module<'_>) -> Stated {
        match self.options.values {
            true => values::stated(self.checkpoint, module),
            false => Stated::default(),
        }
    }

    /// Whether the shape that a file states is the one that the tensors have.
    fn as_stated(&mut self, module: &Module<'_>, stated: &Stated, weight: Weight) {
        let of = |weight: Weight| weight.out_features.zip(weight.in_features);
        let found = match (&stated.fault, of(stated.weight)) {
            (Some(fault), _) => fault.clone(),
            (None, Some(shape)) if stated.disagrees(weight) => {
                format!("[{}, {}]", shape.0, shape.1)
            }
            _ => return,
        };
        let expected = match of(weight) {
            Some((rows, columns)) => format!("[{rows}, {columns}], as the other tensors have it"),
            None => "the shape of the weight".into(),
        };
        let mut finding = Finding::new(&rule::METHOD_018, found, expected).of_module(module.name);
        finding.tensor.clone_from(&stated.tensor);
        self.push(finding);
    }

    /// Which tensors are there, of which types.
    fn tensors(&mut self, module: &Module<'_>, layout: &'static Layout, scheme: &Scheme) {
        for rule in layout.tensors {
            let Some(tensor) = module.tensor(rule.suffix) else {
                let needed = match rule.presence {
                    Presence::Always => true,
                    Presence::Asymmetric => scheme.symmetric == Some(false),
                    Presence::Optional => false,
                };
                if needed {
                    let finding = Finding::new(
                        &rule::METHOD_007,
                        format!("no {}{}", module.name, rule.suffix),
                        format!("{}: {}", layout.name, rule.what),
                    );
                    let name = format!("{}{}", module.name, rule.suffix);
                    self.push(finding.of_module(module.name).of_tensor(name));
                }
                continue;
            };
            if !rule.dtypes.contains(&tensor.dtype) {
                let dtypes: Vec<&str> = rule.dtypes.iter().map(|dtype| dtype.name).collect();
                let expected = format!("{}: {}", dtypes.join(", "), rule.what);
                let finding = Finding::new(&rule::METHOD_008, tensor.dtype.name, expected);
                self.push(finding.of_module(module.name).of_tensor(tensor.name.clone()));
            }
        }
        for (suffix, tensor) in &module.tensors {
            if !knows(layout, suffix) {
                let finding = Finding::new(
                    &rule::METHOD_030,
                    shown(tensor),
                    format!("no such tensor: {} has none", layout.name),
                );
                self.push(finding.of_module(module.name).of_tensor(tensor.name.clone()));
            }
        }
    }

    /// Whether groups and words come out even.
    fn widths(&mut self, module: &QuantizedModule) {
        let Some(in_features) = module.in_features else { return };
        // bitsandbytes' blocks are of the flattened weight, and cross rows.
        let is_flat = |dim: &Dim| dim.times == [Term::Elements];
        let mut lengths = module.layout.tensors.iter().flat_map(|tensor| tensor.shape);
        if let Group::Size(size) = module.group
            && size > 0
            && !in_features.is_multiple_of(size)
            && !lengths.any(is_flat)
        {
            let finding = Finding::new(
                &rule::METHOD_014,
                format!("in_features {in_features} in groups of {size}"),
                "a group size that divides it",
            );
            self.push(finding.of_module(module.name.clone()));
        }
        let lengths = [
            ("in_features", Term::In, module.in_features),
            ("out_features", Term::Out, module.out_features),
        ];
        for (name, term, length) in lengths {
            let Some(length) = length else { continue };
            // Rows of pack-quantized may end within a word; bytes of two codes come out even, too.
            let bits = match module.layout.name {
                "nvfp4-pack-quantized" | "mxfp4-pack-quantized" | "modelopt-nvfp4"
                    if term == Term::In =>
                {
                    8
                }
                "pack-quantized" => continue,
                _ if module.has_words(term) => 32,
                _ => continue,
            };
            let total = length.saturating_mul(module.bits);
            if !total.is_multiple_of(bits) {
                let finding = Finding::new(
                    &rule::METHOD_015,
                    format!("{name} {length} with {} bits: {total} bits", module.bits),
                    format!("a multiple of {bits}"),
                );
                self.push(finding.of_module(module.name.clone()));
            }
        }
    }

    /// Says why shapes do not follow, by what explains most modules.
    fn explain(&mut self, declared: &Declared<'_>, mut misfits: Vec<Misfit<'_, '_>>) {
        let mut seen: HashMap<(&str, Shapes), Vec<Explanation>> = HashMap::new();
        for misfit in &mut misfits {
            if !misfit.guesses.is_empty() || misfit.fit.mismatches.is_empty() {
                continue;
            }
            let key = (misfit.layout.name, shapes(misfit.module));
            if seen.len() < EXPLAINED && !seen.contains_key(&key) {
                seen.insert(key.clone(), guesses(misfit, &key.1));
            }
            misfit.guesses = seen.get(&key).cloned().unwrap_or_default();
        }
        let mut votes: BTreeMap<Explanation, usize> = BTreeMap::new();
        for guess in misfits.iter().flat_map(|misfit| &misfit.guesses) {
            let votes = votes.entry(guess.clone()).or_default();
            *votes = votes.saturating_add(1);
        }
        for misfit in misfits {
            let best = misfit.guesses.iter().rev().max_by_key(|guess| votes.get(*guess));
            self.misfit(declared, &misfit, best);
        }
    }

    fn misfit(
        &mut self,
        declared: &Declared<'_>,
        misfit: &Misfit<'_, '_>,
        best: Option<&Explanation>,
    ) {
        let name = misfit.module.name;
        let sizes = misfit.sizes;
        let in_config = |finding: Finding, fields: &[&str]| {
            let all = Method::ALL.iter().copied().flat_map(|method| method.fields);
            let aliases = all.filter(|field| fields.contains(&field.name));
            let mut names =
                aliases.flat_map(|field| std::iter::once(&field.name).chain(field.aliases));
            let field = names.find(|name| declared.object.contains_key(**name));
            let field = field.copied().or(fields.first().copied()).unwrap_or_default();
            finding.in_file(declared.file).of_field(declared.field(field)).of_module(name)
        };
        let group_field = if sizes.block.is_some() { "weight_block_size" } else { "group_size" };
        let declared_group = match sizes.block {
            Some((rows, cols)) => format!("[{rows}, {cols}]"),
            None => sizes.group.to_string(),
        };
        match best {
            Some(Explanation::Transposed(suffix)) => {
                let tensor = misfit.module.tensor(suffix);
                let shape = tensor.map(|tensor| tensor.shape.clone()).unwrap_or_default();
                let turned: Vec<u64> = shape.iter().rev().copied().collect();
                let finding = Finding::new(
                    &rule::METHOD_013,
                    format!("{shape:?}"),
                    format!("{turned:?}, with which all tensors of the module fit"),
                );
                let tensor = tensor.map(|tensor| tensor.name.clone()).unwrap_or_default();
                self.push(finding.of_module(name).of_tensor(tensor));
            }
            Some(Explanation::Bits(bits)) => self.push(in_config(
                Finding::new(
                    &rule::METHOD_010,
                    format!("bits {}", sizes.bits),
                    format!("bits {bits}, with which all tensors fit"),
                ),
                &["bits"],
            )),
            Some(Explanation::Group(group)) => self.push(in_config(
                Finding::new(
                    &rule::METHOD_011,
                    format!("{group_field} {declared_group}"),
                    format!("{group_field} {group}, with which all tensors fit"),
                ),
                &[group_field],
            )),
            Some(Explanation::Both(bits, group)) => self.push(in_config(
                Finding::new(
                    &rule::METHOD_010,
                    format!("bits {} and {group_field} {declared_group}", sizes.bits),
                    format!("bits {bits} and {group_field} {group}, with which all tensors fit"),
                ),
                &["bits"],
            )),
            Some(Explanation::Layout(layout)) => {
                let finding = Finding::new(
                    &rule::METHOD_012,
                    format!("declared {}", misfit.layout.name),
                    format!("{layout}, with which all tensors fit"),
                );
                let finding = finding.in_file(declared.file);
                self.push(finding.of_field(declared.field("quant_method")).of_module(name));
            }
            None => {
                for mismatch in &misfit.fit.mismatches {
                    let finding = Finding::new(
                        &rule::METHOD_009,
                        format!("{:?}", mismatch.found),
                        format!(
                            "{} ({}, bits {}, group {declared_group})",
                            mismatch.expected(),
                            misfit.layout.name,
                            sizes.bits
                        ),
                    );
                    let tensor = misfit.module.tensor(mismatch.rule.suffix);
                    let tensor = tensor.map(|tensor| tensor.name.clone()).unwrap_or_default();
                    self.push(finding.of_module(name).of_tensor(tensor));
                }
            }
        }
    }

    /// Whether a module is plain in some layers and quantized in others.
    fn alike(&mut self, lookup: &Lookup<'_>, kinds: &BTreeMap<String, [Vec<&str>; 2]>) {
        for (kind, [plain, quantized]) in kinds {
            let forgotten: Vec<&&str> =
                plain.iter().filter(|name| lookup.entry(name).is_none()).collect();
            let ([first, ..], [other, ..]) = (forgotten.as_slice(), quantized.as_slice()) else {
                continue;
            };
            let found = format!(
                "plain in {} layers, quantized in {}: {}",
                plain.len(),
                quantized.len(),
                printable(other, 120)
            );
            let finding = Finding::new(
                &rule::METHOD_022,
                found,
                format!("{} alike, or an entry that leaves some out", printable(kind, 120)),
            );
            self.push(finding.of_module(**first));
        }
    }

    /// Entries that match no module.
    fn entries(
        &mut self,
        declared: &Declared<'_>,
        declaration: &Declaration,
        modules: &[Module<'_>],
    ) {
        let config = self.checkpoint.config("config.json");
        let tied = config
            .and_then(|config| config.get("tie_word_embeddings"))
            .and_then(Json::as_bool)
            .unwrap_or(true);
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for module in modules {
            // Modules that hold others may be named as well.
            let mut name = module.name;
            while names.insert(name)
                && let Some((outer, _)) = name.rsplit_once('.')
            {
                name = outer;
            }
        }
        let (mut patterns, mut named) = (0usize, 0usize);
        for entry in &declaration.entries {
            let implied = entry.field == "lm_head";
            let of_class = matches!(entry.pattern, Pattern::Class(_) | Pattern::Linear);
            let of_tied = tied && entry.text.contains("lm_head");
            if implied || of_class || of_tied {
                continue;
            }
            let matched = match &entry.pattern {
                Pattern::Name(name) => names.contains(name.as_str()),
                pattern => {
                    patterns = patterns.saturating_add(1);
                    patterns > MOST_PATTERNS || names.iter().any(|name| pattern.matches(name))
                }
            };
            if matched {
                continue;
            }
            let mut expected = "a module that there is".to_owned();
            named = named.saturating_add(1);
            if named <= MOST_NEAREST
                && let Some(near) = nearest(&entry.text, &names)
            {
                expected = format!("{expected}; the nearest is {}", printable(near, 120));
            }
            let text = printable(&entry.text, 120);
            let finding = Finding::new(&rule::METHOD_021, format!("\"{text}\""), expected);
            self.push(finding.in_file(declared.file).of_field(declared.field(&entry.field)));
        }
    }

    /// Packed tensors that no config declares.
    fn undeclared(&mut self, modules: &[Module<'_>], judgement: &mut Judgement, none: bool) {
        for module in modules {
            let Some((layout, sizes, weight)) = guess(module) else {
                judgement.plain = judgement.plain.saturating_add(1);
                continue;
            };
            let scheme = Scheme::of(layout);
            judgement.modules.push(QuantizedModule::new(module, layout, sizes, &scheme, weight));
            if none {
                let finding = Finding::new(
                    &rule::METHOD_024,
                    format!(
                        "tensors of {}, {} bits, group {}",
                        layout.name, sizes.bits, sizes.group
                    ),
                    "quantization_config in config.json",
                );
                self.push(finding.in_file("config.json").of_module(module.name));
            }
        }
    }
}

/// For as many entries that match nothing the nearest name is looked for.
const MOST_NEAREST: usize = 32;

impl QuantizedModule {
    fn new(
        module: &Module<'_>,
        layout: &'static Layout,
        sizes: Sizes,
        scheme: &Scheme,
        weight: Weight,
    ) -> QuantizedModule {
        let tensors = module.tensors.iter();
        QuantizedModule {
            name: module.name.to_owned(),
            layout,
            bits: sizes.bits,
            group: sizes.group,
            block: sizes.block.filter(|_| layout.has_blocks()),
            symmetric: scheme.symmetric,
            zero_is_plain: scheme.zero_is_plain,
            out_features: weight.out_features,
            in_features: weight.in_features,
            experts: weight.experts,
            tensors: tensors.map(|(suffix, tensor)| (*suffix, tensor.name.clone())).collect(),
        }
    }

    /// Whether codes or zero points are packed into words of 32 bits along the input or the output.
    pub(crate) fn has_words(&self, along: Term) -> bool {
        let rules = self.layout.tensors.iter().filter(|rule| self.tensor(rule.suffix).is_some());
        rules
            .flat_map(|rule| rule.shape)
            .any(|dim| dim.times == [along, Term::Bits] && dim.per == [Term::Num(32)])
    }

    /// The name of the tensor with this suffix.
    pub fn tensor(&self, suffix: &str) -> Option<&str> {
        let mut tensors = self.tensors.iter();
        tensors.find(|(each, _)| *each == suffix).map(|(_, name)| name.as_str())
    }
}

/// The layout that fits all tensors of a module, whatever is declared, and its sizes.
fn guess(module: &Module<'_>) -> Option<(&'static Layout, Sizes, Weight)> {
    if !module.is_quantized() {
        return None;
    }
    let shapes = shapes(module);
    Layout::all().filter(|layout| is_of(layout, module)).find_map(|layout| {
        let near = Sizes::of(&Scheme::of(layout));
        let (sizes, weight) = sizes_that_fit(layout, near, &shapes, Weight::default())?;
        Some((layout, sizes, weight))
    })
}

/// What would make the shapes of a module follow.
fn guesses(misfit: &Misfit<'_, '_>, shapes: &Shapes) -> Vec<Explanation> {
    let mut guesses = Vec::new();
    let (declared, known) = (misfit.sizes, misfit.known);
    let is_stated = declared != Sizes::of(misfit.scheme);
    // Of two that do not go together, the other may be turned.
    let mismatches = misfit.fit.mismatches.iter().map(|mismatch| mismatch.rule.suffix);
    let mut suffixes: Vec<&'static str> = mismatches.collect();
    suffixes.extend(
        shapes.keys().copied().filter(|suffix| !suffixes.contains(suffix)).collect::<Vec<_>>(),
    );
    for suffix in suffixes {
        let mut turned = shapes.clone();
        if let Some(shape) = turned.get_mut(suffix)
            && shape.len() == 2
        {
            shape.reverse();
            if fit(misfit.layout, declared, &turned, known).mismatches.is_empty() {
                guesses.push(Explanation::Transposed(suffix));
            }
        }
    }
    if let Some((sizes, _)) = sizes_that_fit(misfit.layout, declared, shapes, known)
        && !is_stated
    {
        let group = match sizes.block {
            Some((rows, cols)) => format!("[{rows}, {cols}]"),
            None => sizes.group.to_string(),
        };
        let same_group = sizes.group == declared.group && sizes.block == declared.block;
        guesses.push(match (sizes.bits == declared.bits, same_group) {
            (false, true) => Explanation::Bits(sizes.bits),
            (true, _) => Explanation::Group(group),
            (false, false) => Explanation::Both(sizes.bits, group),
        });
    }
    let others = Layout::all().filter(|layout| *layout != misfit.layout);
    for layout in others.filter(|layout| is_of(layout, misfit.module)) {
        let near = Sizes { bits: declared.bits, ..Sizes::of(&Scheme::of(layout)) };
        let near = Sizes { group: declared.group, ..near };
        if sizes_that_fit(layout, near, shapes, known).is_some() {
            guesses.push(Explanation::Layout(layout.name));
        }
    }
    guesses
}

/// The name that differs least from an entry's text, if it is near.
fn nearest<'a>(text: &str, names: &BTreeSet<&'a str>) -> Option<&'a str> {
    let text: Vec<char> = text.trim_start_matches("re:").chars().take(80).collect();
    let most = text.len().div_ceil(4).max(1);
    let near = names.iter().filter(|name| name.len().abs_diff(text.len()) <= most).take(2000);
    let near = near.map(|name| (distance(&text, name), *name));
    near.filter(|(distance, _)| *distance <= most).min().map(|(_, name)| name)
}

/// How many letters have to change: Levenshtein's distance.
fn distance(one: &[char], two: &str) -> usize {
    let mut row: Vec<usize> = (0..=one.len()).collect();
    for (place, other) in two.chars().enumerate() {
        let mut above = place;
        let mut left = place.saturating_add(1);
        if let Some(first) = row.first_mut() {
            *first = left;
        }
        for (slot, letter) in row.iter_mut().skip(1).zip(one) {
            let changed = above.saturating_add(usize::from(*letter != other));
            above = *slot;
            left = changed.min(above.saturating_add(1)).min(left.saturating_add(1));
            *slot = left;
        }
    }
    row.last().copied().unwrap_or_default()
}
