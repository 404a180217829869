// CSV and JSON of what a table shows.
const quoted = (value) => (/[",\n\r]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);

// A cell that a spreadsheet would take for a formula is made a text.
const safe = (value) => (typeof value === 'string' && /^[=+\-@\t]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value);
const text = (value) => (value === null || value === undefined || Number.isNaN(value) ? '' : value === Infinity ? 'inf' : value === -Infinity ? '-inf' : String(safe(value)));

export function csv(names, rows) {
  return [names, ...rows].map((row) => row.map((value) => quoted(text(value))).join(',')).join('\n') + '\n';
}
export function jsonLines(names, rows) {
  const plain = (value) => (typeof value !== 'number' || Number.isFinite(value) ? value : Number.isNaN(value) ? null : text(value));
  return rows.map((row) => JSON.stringify(Object.fromEntries(names.map((name, i) => [name, plain(row[i])])))).join('\n') + '\n';
}
