package console

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"strings"
)

// file is what a page lists, for a file of its own.
type file struct {
	name    string
	columns []string
	rows    [][]string
	lines   []json.RawMessage // the rows as JSON
}

// exports are the addresses of a page as files, by their kinds.
func (v *visit) exports() map[string]string {
	return map[string]string{"JSONL": v.with("export", "jsonl"), "CSV": v.with("export", "csv")}
}

// send sends the file as jsonl or csv.
func (f file) send(w http.ResponseWriter, kind string) {
	if !f.begin(w, kind) {
		return
	}
	var out bytes.Buffer
	if kind == "csv" {
		f.write(&out, kind, f.columns)
	} else {
		f.write(&out, kind)
	}
	_, _ = w.Write(out.Bytes()) // the client may be gone
}

// begin sends the head of an answer with a file, or refuses the kind.
func (f file) begin(w http.ResponseWriter, kind string) bool {
	switch kind {
	case "jsonl":
		w.Header().Set("Content-Type", "application/x-ndjson; charset=utf-8")
	case "csv":
		w.Header().Set("Content-Type", "text/csv; charset=utf-8")
	default:
		http.Error(w, "export must be jsonl or csv", http.StatusBadRequest)
		return false
	}
	w.Header().Set("Content-Disposition", `attachment; filename="`+f.name+"."+kind+`"`)
	return true
}

// write writes the rows of a file, of CSV after a head.
func (f file) write(out *bytes.Buffer, kind string, head ...[]string) {
	if kind == "jsonl" {
		for _, line := range f.lines {
			_ = json.Compact(out, line) // it was read
			out.WriteByte('\n')
		}
		return
	}
	table := csv.NewWriter(out)
	_ = table.WriteAll(head) // into memory
	for _, row := range f.rows {
		for i := range row {
			row[i] = forSpreadsheet(row[i])
		}
		_ = table.Write(row)
	}
	table.Flush()
}

// forSpreadsheet keeps a spreadsheet from taking a text as a formula.
func forSpreadsheet(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return "'" + text
	}
	return text
}
