//! Rows with their columns sorted into fields: what cases, labels and judgements share.
//!
//! Each column is looked up once for a file, not once for a row. Two columns for one field
//! are refused only where they differ; a column for no field is handed on as it is.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use super::cell::Cell;
use super::csv_rows::CsvRows;
use super::error::{DatasetError, Fault, RowError, RowProblem};
use super::fields::{AliasUsed, FieldMap, FieldSpec, field_of};
use super::format::Format;
use super::json_rows::{JsonRows, Object};
use super::source::{Digest, Source};

/// More than any real data set has, and few enough to keep in memory.
const MAX_COLUMNS: usize = 10_000;

type BoxedInput = Box<dyn BufRead + Send>;

enum Rows {
    Csv(CsvRows<BoxedInput>),
    Json(JsonRows<BoxedInput>),
}

/// Everything known about the columns of a file.
struct Columns {
    specs: &'static [FieldSpec],
    mapped: Vec<Option<String>>,
    names: Vec<String>,
    index: HashMap<String, usize>,
    /// The field of each column.
    fields: Vec<Option<usize>>,
    /// Whether the column has filled its field in some row.
    used: Vec<bool>,
    /// The last row that had the column, so that a second one is seen.
    seen: Vec<u64>,
    /// Whether a field that is mapped to a path inside a column was found there.
    reached: Vec<bool>,
}

impl Columns {
    /// The fields that are mapped to something that is no column, as far as is known.
    fn paths(&self) -> impl Iterator<Item = (usize, &str)> {
        let mapped = self.mapped.iter().enumerate();
        mapped
            .filter_map(|(field, column)| Some((field, column.as_deref()?)))
            .filter(|(_, column)| !column.is_empty() && !self.index.contains_key(*column))
    }

    /// Whether a path may lead into one of these columns.
    fn may_hold(&self, path: &str) -> bool {
        let metadata = self.specs.iter().position(|spec| spec.name == "metadata");
        let into =
            |name: &String| path.strip_prefix(name.as_str()).is_some_and(|r| r.starts_with('.'));
        metadata.is_some_and(|field| self.fields.contains(&Some(field)))
            || self.names.iter().any(into)
    }

    fn add(&mut self, name: &str) -> usize {
        let mapped = self.mapped.iter().position(|column| column.as_deref() == Some(name));
        // A mapped field takes no column by name any more.
        let field = mapped
            .or_else(|| field_of(self.specs, name).filter(|&field| self.mapped[field].is_none()));
        let column = self.names.len();
        self.names.push(name.to_owned());
        self.index.insert(name.to_owned(), column);
        self.fields.push(field);
        self.used.push(false);
        self.seen.push(0);
        column
    }
}

/// A file as rows of fields.
pub(crate) struct Table {
    rows: Rows,
    columns: Columns,
    path: Arc<str>,
    number: u64,
    ended: bool,
}

/// One row: a cell for each field that has one, and the rest.
pub(crate) struct Row<'a> {
    /// The line of the file on which it begins, from 1.
    pub(crate) line: u64,
    /// Which row, from 1, faulty ones counted.
    pub(crate) number: u64,
    /// Cells of columns that mean no field.
    others: Vec<(usize, Cell<'a>)>,
    cells: Vec<Option<(usize, Cell<'a>)>>,
    columns: &'a Columns,
    path: &'a Arc<str>,
}

impl<'a> Row<'a> {
    /// The cell of a field; `None` where the row has no such column.
    pub(crate) fn cell(&self, field: usize) -> Option<Cell<'a>> {
        self.cells[field].map(|(_, cell)| cell)
    }

    /// The cell of a field, if it says something.
    pub(crate) fn filled(&self, field: usize) -> Option<Cell<'a>> {
        self.cell(field).filter(|cell| !cell.is_empty())
    }

    /// The column that a field was read from.
    pub(crate) fn column(&self, field: usize) -> &'a str {
        self.cells[field].map(|(column, _)| self.columns.names[column].as_str()).unwrap_or_default()
    }

    /// Reads a field with `read`, naming its column where that fails.
    pub(crate) fn read<T>(
        &self,
        field: usize,
        read: impl FnOnce(Cell<'a>) -> Result<Option<T>, RowProblem>,
    ) -> Result<Option<T>, Fault> {
        match self.cell(field) {
            Some(cell) => read(cell).map_err(|problem| problem.of(self.column(field))),
            None => Ok(None),
        }
    }

    /// The cells of columns that mean no field, with the columns' names.
    pub(crate) fn others(&self) -> impl Iterator<Item = (&'a str, Cell<'a>)> + '_ {
        self.others.iter().map(|(column, cell)| (self.columns.names[*column].as_str(), *cell))
    }

    /// The columns of this row, for a message.
    fn present(&self) -> Vec<String> {
        let fields =
            self.cells.iter().flatten().map(|(column, _)| self.columns.names[*column].clone());
        fields.chain(self.others().map(|(name, _)| name.to_owned())).collect()
    }

    /// Why the row has no cell for a field that it must have.
    pub(crate) fn missing(&self, field: usize) -> RowProblem {
        let (name, columns) = (self.columns.specs[field].name, self.present());
        match self.columns.mapped[field].clone() {
            Some(column) if !column.is_empty() => RowProblem::MapColumn {
                field: name,
                suggestion: crate::config::nearest(&column, columns.iter().map(String::as_str)),
                column,
                columns,
            },
            _ => RowProblem::Missing { field: name, columns },
        }
    }

    pub(crate) fn error(&self, fault: impl Into<Fault>) -> RowError {
        RowError::new(self.path, self.line, fault.into())
    }
}

impl Table {
    /// Opens a source; in CSV and TSV the header is read and checked against the mapping.
    pub(crate) fn open(
        source: &Source,
        specs: &'static [FieldSpec],
        map: &FieldMap,
        max_row_bytes: usize,
        digest: Option<&Digest>,
    ) -> Result<Self, DatasetError> {
        let path = source.shared_name();
        let mapped = map.resolve(specs)?;
        source.refuse_one_object()?;
        let input = source.bytes(digest)?;
        input.mark.map_err(|problem| RowError::new(&path, 1, problem.into()))?;
        let reader = input.reader;
        let rows = match source.format() {
            Format::Csv => Rows::Csv(CsvRows::new(reader, b',', max_row_bytes)),
            Format::SemicolonCsv => Rows::Csv(CsvRows::new(reader, b';', max_row_bytes)),
            Format::Tsv => Rows::Csv(CsvRows::new(reader, b'\t', max_row_bytes)),
            Format::JsonLines => Rows::Json(JsonRows::lines(reader, max_row_bytes)),
            Format::Json => Rows::Json(JsonRows::list(reader, max_row_bytes)),
        };
        let columns = Columns {
            specs,
            mapped,
            names: Vec::new(),
            index: HashMap::new(),
            fields: Vec::new(),
            used: Vec::new(),
            seen: Vec::new(),
            reached: vec![false; specs.len()],
        };
        let mut table = Self { rows, columns, path, number: 0, ended: false };
        table.read_header()?;
        Ok(table)
    }

    fn read_header(&mut self) -> Result<(), DatasetError> {
        let Rows::Csv(rows) = &mut self.rows else { return Ok(()) };
        let Some((line, result)) = rows.advance() else {
            self.ended = true;
            return Ok(());
        };
        result.map_err(|problem| {
            let problem = match problem {
                RowProblem::CarriageReturn { .. } => RowProblem::CarriageReturns,
                other => other,
            };
            RowError::new(&self.path, line, problem.into())
        })?;
        for (place, cell) in rows.cells().enumerate() {
            // The index that pandas writes has no name.
            let name =
                if cell.is_empty() { format!("column_{}", place + 1) } else { cell.to_owned() };
            if self.columns.index.contains_key(&name) {
                let path = self.path.to_string();
                return Err(DatasetError::RepeatedColumn { path, column: name });
            }
            self.columns.add(&name);
        }
        match self.unmapped() {
            Some(problem) => Err(RowError::new(&self.path, line, problem.into()).into()),
            None => Ok(()),
        }
    }

    /// The first mapped column that has not been met. In a header, what may still be a path
    /// inside a column is passed over.
    fn unmapped(&self) -> Option<RowProblem> {
        let columns = &self.columns;
        let header = self.number == 0;
        let wanted = columns.mapped.iter().enumerate();
        let (field, _) = columns.paths().find(|(field, path)| {
            let passed_over = header && columns.may_hold(path);
            !columns.reached[*field] && !passed_over
        })?;
        let (_, column) = wanted
            .filter_map(|(field, column)| Some((field, column.as_deref()?)))
            .find(|(own, _)| *own == field)?;
        Some(RowProblem::MapColumn {
            field: columns.specs[field].name,
            column: column.to_owned(),
            suggestion: crate::config::nearest(column, columns.names.iter().map(String::as_str)),
            columns: columns.names.clone(),
        })
    }

    /// Ends the reading. JSON says its columns only row by row, so it is here that a mapping
    /// to a column which no row has comes out.
    pub(crate) fn end(&mut self) -> Option<RowError> {
        self.ended = true;
        if self.number == 0 {
            return None;
        }
        self.unmapped().map(|problem| RowError::new(&self.path, 0, problem.into()))
    }

    /// Refuses a CSV file without a column for `field`. JSON rows are asked one by one.
    pub(crate) fn require(&self, field: usize) -> Result<(), DatasetError> {
        let missing = !self.columns.fields.contains(&Some(field));
        if self.is_csv() && missing && !self.columns.names.is_empty() {
            let problem = RowProblem::Missing {
                field: self.columns.specs[field].name,
                columns: self.columns.names.clone(),
            };
            return Err(RowError::new(&self.path, 1, problem.into()).into());
        }
        Ok(())
    }

    pub(crate) fn is_csv(&self) -> bool {
        matches!(self.rows, Rows::Csv(_))
    }

    /// The columns met so far.
    pub(crate) fn columns(&self) -> &[String] {
        &self.columns.names
    }

    /// The columns that filled a field of another name, in the order of the fields.
    pub(crate) fn aliases(&self) -> Vec<AliasUsed> {
        let columns = &self.columns;
        let mut used: Vec<(usize, AliasUsed)> = columns
            .names
            .iter()
            .zip(&columns.fields)
            .zip(&columns.used)
            .filter_map(|((column, field), used)| {
                let field = (*field).filter(|_| *used)?;
                let name = columns.specs[field].name;
                (column != name).then(|| (field, AliasUsed { field: name, column: column.clone() }))
            })
            .collect();
        used.sort();
        used.into_iter().map(|(_, alias)| alias).collect()
    }

    /// Reads the rest of the file without looking at it.
    pub(crate) fn drain(&mut self) -> std::io::Result<()> {
        match &mut self.rows {
            Rows::Csv(rows) => rows.drain(),
            Rows::Json(rows) => rows.drain(),
        }
    }

    /// The next row, or what is wrong with it. After an error that can't be skipped there are
    /// no more rows.
    pub(crate) fn next(&mut self) -> Option<Result<Row<'_>, RowError>> {
        if self.ended {
            return None;
        }
        let advanced = match &mut self.rows {
            Rows::Csv(rows) => loop {
                match rows.advance() {
                    // Spreadsheets write rows of delimiters where nothing is.
                    Some((_, Ok(()))) if rows.len() > 1 && rows.cells().all(str::is_empty) => {}
                    advanced => break advanced,
                }
            },
            Rows::Json(rows) => rows.advance(),
        };
        let Some((line, result)) = advanced else {
            self.ended = true;
            return None;
        };
        self.number += 1;
        if let Err(problem) = result {
            let error = RowError::new(&self.path, line, problem.into());
            self.ended = !error.is_skippable();
            return Some(Err(error));
        }
        let Self { rows, columns, path, number, .. } = self;
        let sorted = match rows {
            Rows::Csv(rows) => sort_csv(rows, columns),
            Rows::Json(rows) => sort_json(rows, columns, *number),
        };
        Some(match sorted {
            Ok((cells, others)) => Ok(Row { line, number: *number, cells, others, columns, path }),
            Err(fault) => Err(RowError::new(path, line, fault)),
        })
    }
}

/// A cell for each field, and the cells of the columns that mean none.
type Sorted<'a> = (Vec<Option<(usize, Cell<'a>)>>, Vec<(usize, Cell<'a>)>);

fn sort_csv<'a>(rows: &'a CsvRows<BoxedInput>, columns: &mut Columns) -> Result<Sorted<'a>, Fault> {
    let (found, expected) = (rows.len(), columns.names.len());
    if found != expected {
        return Err(RowProblem::CellCount { found, expected }.into());
    }
    let mut cells = vec![None; columns.specs.len()];
    let mut others = Vec::new();
    for (column, text) in rows.cells().enumerate() {
        let cell = Cell::Text(text);
        match columns.fields[column] {
            Some(field) => place(&mut cells[field], column, cell, field, columns)?,
            None if cell.is_empty() => {}
            None => others.push((column, cell)),
        }
    }
    follow(&mut cells, &others, columns);
    mark_used(&cells, columns);
    Ok((cells, others))
}

fn sort_json<'a>(
    rows: &'a JsonRows<BoxedInput>,
    columns: &mut Columns,
    number: u64,
) -> Result<Sorted<'a>, Fault> {
    let Object(entries) = Object::parse(rows.text()?)?;
    let mut cells = vec![None; columns.specs.len()];
    let mut others = Vec::new();
    for (key, raw) in entries {
        let column = match columns.index.get(key.as_ref()) {
            Some(&column) => column,
            None if columns.names.len() == MAX_COLUMNS => {
                return Err(RowProblem::TooManyColumns { limit: MAX_COLUMNS }.into());
            }
            None => columns.add(&key),
        };
        if columns.seen[column] == number {
            return Err(RowProblem::RepeatedKey.of(key));
        }
        columns.seen[column] = number;
        let cell = Cell::Json(raw);
        match columns.fields[column] {
            Some(field) => place(&mut cells[field], column, cell, field, columns)?,
            None if cell.is_null() => {}
            None => others.push((column, cell)),
        }
    }
    follow(&mut cells, &others, columns);
    mark_used(&cells, columns);
    Ok((cells, others))
}

/// Fills the fields that are mapped to a path from inside the cells: `meta.doc` from the column
/// `meta`, and `doc` or `metadata.doc` from the metadata, whatever its column is called.
fn follow<'a>(
    cells: &mut [Option<(usize, Cell<'a>)>],
    others: &[(usize, Cell<'a>)],
    columns: &mut Columns,
) {
    let paths: Vec<(usize, String)> =
        columns.paths().map(|(field, path)| (field, path.to_owned())).collect();
    for (field, path) in paths {
        let all = cells.iter().flatten().chain(others).copied();
        let mut below = all.filter_map(|(column, cell)| {
            let rest = path.strip_prefix(columns.names[column].as_str())?.strip_prefix('.')?;
            Some((column, inside(cell, rest)?))
        });
        let in_metadata = || {
            let place = columns.specs.iter().position(|spec| spec.name == "metadata")?;
            let (column, cell) = cells[place]?;
            Some((column, inside(cell, path.strip_prefix("metadata.").unwrap_or(&path))?))
        };
        let found = below.next().or_else(in_metadata);
        if let Some(found) = found {
            columns.reached[field] = true;
            cells[field] = Some(found);
        }
    }
}

/// What an object holds under a path of keys, of which each may have dots of its own.
fn inside<'a>(cell: Cell<'a>, path: &str) -> Option<Cell<'a>> {
    let object = cell.object().ok()??;
    let exact = object.0.iter().find(|(key, _)| key == path);
    exact.map(|(_, raw)| Cell::Json(raw)).or_else(|| {
        object.0.iter().find_map(|(key, raw)| {
            let rest = path.strip_prefix(key.as_ref())?.strip_prefix('.')?;
            inside(Cell::Json(raw), rest)
        })
    })
}

/// Puts a cell into its field, unless another column says something else there.
fn place<'a>(
    slot: &mut Option<(usize, Cell<'a>)>,
    column: usize,
    cell: Cell<'a>,
    field: usize,
    columns: &Columns,
) -> Result<(), Fault> {
    // Null says less than empty text, and that less than text.
    let weight = |cell: Cell<'_>| u8::from(!cell.is_null()) + u8::from(!cell.is_empty());
    match *slot {
        Some((first, held)) if !held.is_empty() && !cell.is_empty() && !held.same(cell) => {
            return Err(RowProblem::Conflict {
                field: columns.specs[field].name.to_owned(),
                first: columns.names[first].clone(),
                second: columns.names[column].clone(),
            }
            .into());
        }
        Some((_, held)) if weight(held) >= weight(cell) => {}
        _ => *slot = Some((column, cell)),
    }
    Ok(())
}

fn mark_used(cells: &[Option<(usize, Cell<'_>)>], columns: &mut Columns) {
    for (column, cell) in cells.iter().flatten() {
        columns.used[*column] |= !cell.is_null();
    }
}
