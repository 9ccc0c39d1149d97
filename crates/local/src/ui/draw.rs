//! Drawing: a screen onto a frame, from top to bottom.
//!
//! In: a [`Screen`]. Out: cells. Must not: change anything, or fail on a terminal that is too small.

use super::history::SECONDS;
use super::keys::KEYS;
use super::{Entry, Screen};
use crate::ledger::Verdict;
use crate::playground::picture::{By, OperatorPicture, Picture, SitePicture};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize as _};
use ratatui::symbols::Marker;
use ratatui::text::{Line, Span};
use ratatui::widgets::{
    Axis, Block, Cell, Chart, Clear, Dataset, GraphType, LegendPosition, Paragraph, Row, Sparkline, Table, Wrap,
};

/// One colour for each site, in the table and in the chart.
const COLOURS: [Color; 5] = [Color::Cyan, Color::Yellow, Color::Magenta, Color::Blue, Color::Green];

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, screen: &Screen) {
    let sites = u16::try_from(screen.picture.sites.len()).unwrap_or(u16::MAX).saturating_add(3);
    let rows = Layout::vertical([
        Constraint::Length(1),
        Constraint::Length(sites),
        Constraint::Length(11),
        Constraint::Min(3),
        Constraint::Length(1),
        Constraint::Length(1),
    ]);
    let [title, table, charts, timeline, ledger, keys] = rows.areas(frame.area());
    let [writes, gap] = Layout::horizontal([Constraint::Percentage(62), Constraint::Fill(1)]).areas(charts);
    frame.render_widget(title_line(screen), title);
    frame.render_widget(site_table(screen), table);
    draw_writes(frame, screen, writes);
    draw_gap(frame, screen, gap);
    frame.render_widget(timeline_lines(screen, timeline.height), timeline);
    frame.render_widget(ledger_line(screen), ledger);
    frame.render_widget(key_line(screen), keys);
    if screen.help {
        draw_help(frame);
    }
}

fn title_line(screen: &Screen) -> Line<'_> {
    let picture = &screen.picture;
    let mut spans = vec![Span::from(" Bloodraven playground ").bold().reversed(), Span::from("  ")];
    spans.push(match picture.primary() {
        Some(site) => Span::from(format!("{site} writes")).green().bold(),
        None => Span::from("nobody writes").red().bold(),
    });
    let authority = &picture.authority;
    if !authority.phase.is_empty() {
        let because = if authority.cause.is_empty() { String::new() } else { format!(" ({})", authority.cause) };
        spans.push(Span::from(format!("  epoch {} {}{because}", authority.epoch, authority.phase)));
    }
    spans.extend((0..).zip(&picture.operators).map(|(number, operator)| operator_span(number, operator)));
    if let Some(alert) = &picture.alert {
        spans.push(Span::from(format!("  {alert}")).red());
    }
    Line::from(spans)
}

fn operator_span(number: usize, operator: &OperatorPicture) -> Span<'_> {
    let name = format!("  operator-{number} ");
    match (operator.pid, operator.hurt.first(), operator.answers) {
        (None, _, _) => Span::from(name + "down").red(),
        (_, Some(hurt), _) => Span::from(name + hurt).yellow(),
        (_, None, true) => Span::from(name + "up"),
        (_, None, false) => Span::from(name + "silent").yellow(),
    }
}

fn site_table(screen: &Screen) -> Table<'_> {
    let header = ["", "site", "state", "transactions", "lag", "lease", "epoch", "writes/s", ""];
    let rows = screen.picture.sites.iter().enumerate().map(|(index, site)| site_row(screen, index, site));
    let widths = [
        Constraint::Length(1),
        Constraint::Length(14),
        Constraint::Length(22),
        Constraint::Length(14),
        Constraint::Length(7),
        Constraint::Length(9),
        Constraint::Length(6),
        Constraint::Length(8),
        Constraint::Fill(1),
    ];
    Table::new(rows, widths).header(Row::new(header).bold()).block(Block::bordered().title(" sites "))
}

fn site_row<'a>(screen: &'a Screen, index: usize, site: &'a SitePicture) -> Row<'a> {
    let dr = if site.role == "dr-only" { " (dr)" } else { "" };
    let dash = || "-".to_owned();
    let lag = site.lag.map_or_else(dash, |lag| format!("{lag} s"));
    let lag = if screen.picture.primary() == Some(site.name.as_str()) { dash() } else { lag };
    let lease = site
        .lease_ms
        .filter(|left| *left > 0)
        .map_or_else(dash, |left| format!("{}.{} s", left / 1000, left % 1000 / 100));
    let epoch = site.epoch.map_or_else(dash, |epoch| epoch.to_string());
    let (state, colour) = state_of(site);
    let marker = if index == screen.selected { ">" } else { "" };
    Row::new([
        Cell::from(marker).bold(),
        Cell::from(format!("{}{dr}", site.name)).style(Style::new().fg(colour_of(index)).add_modifier(Modifier::BOLD)),
        Cell::from(state).style(Style::new().fg(colour)),
        Cell::from(site.transactions.to_string()),
        Cell::from(lag),
        Cell::from(lease),
        Cell::from(epoch),
        Cell::from(site.writes_per_second.to_string()),
        Cell::from(remarks(site)).style(Style::new().fg(Color::Red)),
    ])
}

fn state_of(site: &SitePicture) -> (String, Color) {
    match site.state.as_str() {
        "writable" => ("writable".to_owned(), Color::Green),
        "read-only" if site.following => ("read-only, following".to_owned(), Color::Reset),
        "read-only" => ("read-only".to_owned(), Color::Yellow),
        "" => ("unknown".to_owned(), Color::DarkGray),
        other => (other.to_owned(), Color::Red),
    }
}

fn remarks(site: &SitePicture) -> String {
    let mut all = site.hurt.clone();
    if site.divergent > 0 {
        all.push(format!("{} divergent", site.divergent));
    }
    all.extend(site.clone.as_ref().map(|phase| format!("clone: {phase}")));
    if !site.mysqld.is_empty() && site.mysqld != "up" {
        all.push(format!("mysqld {}", site.mysqld));
    }
    all.join(", ")
}

fn colour_of(index: usize) -> Color {
    COLOURS.get(index % COLOURS.len()).copied().unwrap_or(Color::Reset)
}

#[expect(clippy::cast_precision_loss, reason = "writes a second and two minutes are small numbers")]
fn draw_writes(frame: &mut Frame<'_>, screen: &Screen, area: Rect) {
    let lines: Vec<Vec<(f64, f64)>> =
        (0..screen.picture.sites.len()).map(|index| screen.history.writes(index)).collect();
    let datasets = lines.iter().zip(&screen.picture.sites).enumerate().map(|(index, (points, site))| {
        let style = Style::new().fg(colour_of(index));
        let line = Dataset::default().name(site.name.as_str()).marker(Marker::Braille);
        line.graph_type(GraphType::Line).style(style).data(points)
    });
    let most = screen.history.most().max(50).next_multiple_of(50);
    let past = -(SECONDS as f64);
    let x = Axis::default().bounds([past, 0.0]).labels([format!("{past} s"), "now".to_owned()]);
    let y = Axis::default().bounds([0.0, most as f64]).labels(["0".to_owned(), most.to_string()]);
    let title = " acknowledged writes a second ";
    let chart = Chart::new(datasets.collect()).block(Block::bordered().title(title)).x_axis(x).y_axis(y);
    let chart = chart.legend_position(Some(LegendPosition::TopLeft));
    frame.render_widget(chart.hidden_legend_constraints((Constraint::Ratio(1, 1), Constraint::Ratio(1, 1))), area);
}

fn draw_gap(frame: &mut Frame<'_>, screen: &Screen, area: Rect) {
    let load = &screen.picture.load;
    let now = if load.silence_ms < 100 { "none".to_owned() } else { shown(load.silence_ms) };
    let title = format!(" write gap: now {now}, longest {} ", shown(load.gap_ms));
    let block = Block::bordered().title(title);
    let room = usize::from(block.inner(area).width);
    let silences = screen.history.silences();
    let latest = silences.get(silences.len().saturating_sub(room)..).unwrap_or_default();
    // At least a second high, so that the usual hundredths look like nothing.
    let most = latest.iter().copied().max().unwrap_or(0).max(1000);
    frame.render_widget(
        Sparkline::default().data(latest).max(most).style(Style::new().fg(Color::Red)).block(block),
        area,
    );
}

fn shown(millis: u64) -> String {
    if millis < 1000 { format!("{millis} ms") } else { format!("{}.{} s", millis / 1000, millis % 1000 / 100) }
}

fn timeline_lines(screen: &Screen, height: u16) -> Paragraph<'_> {
    let room = usize::from(height.saturating_sub(2));
    let newest = screen.timeline.iter().rev().take(room).collect::<Vec<_>>().into_iter().rev();
    let lines: Vec<Line<'_>> = newest.map(entry_line).collect();
    Paragraph::new(lines).block(Block::bordered().title(" what happened, and why "))
}

fn entry_line(entry: &Entry) -> Line<'_> {
    // The clock time out of `2026-01-02T03:04:05.678Z`.
    let time = entry.at.split_once('T').map_or("", |(_, time)| time.get(..12).unwrap_or(time));
    let style = match entry.by {
        By::Operator => Style::new(),
        By::Warning => Style::new().fg(Color::Red),
        By::Hand => Style::new().fg(Color::Yellow),
        By::Script => Style::new().fg(Color::DarkGray),
    };
    Line::from(vec![
        Span::from(format!("{time} ")).dark_gray(),
        Span::from(format!("{:<26} ", entry.reason)).style(style.add_modifier(Modifier::BOLD)),
        Span::from(entry.message.as_str()).style(style),
    ])
}

fn ledger_line(screen: &Screen) -> Line<'_> {
    let Picture { load, ledger, .. } = &screen.picture;
    let Verdict { wrong_side, lost, reported, received_and_lost, stranded, unreported, .. } =
        ledger.clone().unwrap_or_default();
    let count = |name: &str, count: u64| {
        let span = Span::from(format!("{count} {name}"));
        if count == 0 { span.green() } else { span.red().bold() }
    };
    let mut spans = vec![
        Span::from(" ledger  ").bold(),
        Span::from(format!("{} acknowledged / ", load.acknowledged)),
        count("lost", lost),
        Span::from(" / "),
        count("wrong-side", wrong_side),
        Span::from(" / "),
        count("received and lost", received_and_lost),
        Span::from(format!("   door {}/s, reads {}/s", load.door_per_second, load.reads_per_second)),
    ];
    if reported > 0 {
        spans.push(Span::from(format!("   {reported} reported as divergent")).yellow());
    }
    let waiting = stranded + unreported;
    if waiting > 0 {
        spans.push(Span::from(format!("   {waiting} wait for their site")).yellow());
    }
    if !load.on {
        spans.push(Span::from("   load off").yellow());
    }
    Line::from(spans)
}

fn key_line(screen: &Screen) -> Line<'_> {
    if let Some(answer) = &screen.answer {
        return Line::from(format!(" {answer}")).yellow();
    }
    if let Some((story, step)) = &screen.script {
        return Line::from(format!(" {story}: {step}")).yellow();
    }
    let site = screen.picture.sites.get(screen.selected).map_or("site", |site| site.name.as_str());
    let keys = format!(
        " {site}: k kill  p pause  c cut off  f fail over to  r reclone  |  o operator  h heal  l load  ? all keys  q quit"
    );
    Line::from(keys).dark_gray()
}

fn draw_help(frame: &mut Frame<'_>) {
    let lines: Vec<Line<'_>> = KEYS.iter().map(|(key, what)| Line::from(format!("  {key:<14} {what}"))).collect();
    let height = u16::try_from(lines.len()).unwrap_or(u16::MAX).saturating_add(2);
    let [area] = Layout::vertical([Constraint::Length(height)]).flex(ratatui::layout::Flex::Center).areas(frame.area());
    let [area] = Layout::horizontal([Constraint::Length(72)]).flex(ratatui::layout::Flex::Center).areas(area);
    frame.render_widget(Clear, area);
    let page = Paragraph::new(lines).wrap(Wrap { trim: false }).block(Block::bordered().title(" keys "));
    frame.render_widget(page, area);
}
