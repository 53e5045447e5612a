package move

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// dump reads every table of a file without the plan of a move. A job's number becomes its ID, and dump leaves out the
// columns that a move makes anew.
func dump(t *testing.T, address string) map[string][]string {
	t.Helper()
	s, err := openLite(t.Context(), strings.TrimPrefix(address, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	all, err := s.columns(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := make(map[string][]string)
	for table, columns := range all {
		expressions := dumped(table, columns)
		if expressions == nil {
			continue
		}
		text := "select " + strings.Join(expressions, ", ") + " from " + table + " t"
		if table == "sluice_tenant_queue" { // other rows have nothing but a place, which a move makes anew
			text += " where t.filled_at is not null"
		}
		rows, err := s.db.Query(text)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		out[table] = []string{}
		for rows.Next() {
			cells, into := make([]any, len(expressions)), make([]any, len(expressions))
			for i := range cells {
				into[i] = &cells[i]
			}
			if err := rows.Scan(into...); err != nil {
				t.Fatal(err)
			}
			out[table] = append(out[table], told(expressions, cells))
		}
		slices.Sort(out[table])
	}
	return out
}

func dumped(table string, columns []string) (expressions []string) {
	for _, column := range columns {
		switch table + "." + column {
		case "sluice_audit.seq":
		case "sluice_job.seq", "sluice_live.in_tenant_queue", "sluice_flow.virtual_start", "sluice_flow.tenant", "sluice_tenant_queue.virtual_start", "sluice_tenant_queue.jobs",
			"sluice_tenant_queue.active", "sluice_batch_count.died", "sluice_batch_count.changed", "sluice_tenant_queue.at_limit", "sluice_tenant_queue.wake_at", "sluice_migration.applied_at":
			continue
		default:
			if column == "seq" || column == "blocked_by" || table+"."+column == "sluice_hold.behind" {
				expressions = append(expressions, "(select id from sluice_job j where j.seq = t."+column+")")
				continue
			}
		}
		expressions = append(expressions, `t."`+column+`"`)
	}
	if slices.Contains([]string{"sluice_clock", "sluice_holder", "sluice_instruction", "sluice_limit_lane", "sluice_lead", "sluice_progress", "sluice_stat_holder", "sluice_move", "sluice_moved"}, table) {
		return nil
	}
	return expressions
}

// told writes a row as text, so that two rows can be compared.
func told(names []string, cells []any) string {
	var text strings.Builder
	for i, cell := range cells {
		if raw, isBytes := cell.([]byte); isBytes {
			cell = hex.EncodeToString(raw)
		}
		if said, isText := cell.(string); isText && (strings.HasPrefix(said, "{") || strings.HasPrefix(said, "[")) {
			var value any
			if json.Unmarshal([]byte(said), &value) == nil {
				plain, _ := json.Marshal(value) // Marshal cannot fail: the value was read from JSON
				cell = string(plain)
			}
		}
		fmt.Fprintf(&text, "%s=%#v ", names[i], cell)
	}
	return text.String()
}

func sameDump(t *testing.T, before, after map[string][]string) {
	t.Helper()
	for table, rows := range before {
		missing := 0
		for i, row := range rows {
			if i >= len(after[table]) || after[table][i] != row {
				if missing++; missing <= 2 {
					t.Errorf("%s: before %s\nafter  %s", table, row, append(after[table], make([]string, len(rows))...)[i])
				}
			}
		}
		if len(rows) != len(after[table]) || missing > 0 {
			t.Errorf("%s: %d rows before, %d after, %d differ", table, len(rows), len(after[table]), missing)
		}
	}
}
