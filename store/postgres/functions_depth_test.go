package postgres_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestFunctionsRefuseJSONThatIsNestedTooDeep brings JSON of 501 levels, which programs refuse, by each function that stores it.
func TestFunctionsRefuseJSONThatIsNestedTooDeep(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	owner := r.as("postgres")
	r.exec(`select sluice.enqueue(queue => 'scraper', payload => '1', delay => '1 h', job_id => '` + mine + `')`)
	objects := strings.Repeat(`{"a":`, 501) + "1" + strings.Repeat("}", 501)
	hidden := `[` + strings.Repeat(`"[\"{\\",`, 600) + lists(499) + `]` // brackets in texts nest nothing
	wide := `[` + strings.Repeat(`[{}],`, 600) + lists(499) + `]`
	both := []string{lists(501), objects, `[` + strings.Repeat(`"]\"}\\",`, 600) + lists(500) + `]`}
	for call, field := range map[string]string{
		`select sluice.enqueue(queue => 'scraper', payload => '%')`:                                                                                             "payload",
		`select sluice.edit(job_id => '` + mine + `', reason => 'r', payload => '%')`:                                                                           "payload",
		`select sluice.complete(gen_random_uuid(), gen_random_uuid(), '%')`:                                                                                     "results",
		`select sluice.complete_many(array[gen_random_uuid()], array[gen_random_uuid()], array['%'::json])`:                                                     "results",
		`select sluice.checkpoint(gen_random_uuid(), gen_random_uuid(), '%')`:                                                                                   "checkpoint",
		`select sluice.open_batch(on_death => '{"queue":"scraper","payload":%}')`:                                                                               "on_death: payload",
		`select sluice.start_flow('{"name":"f","nodes":[{"name":"a","queue":"scraper","payload":%}]}')`:                                                         `node "a": payload`,
		`select error from sluice.enqueue_many('[{"queue":"scraper","payload":%}]')`:                                                                            "payload",
		`select sluice.start_flow('{"name":"f","nodes":[{"name":"a","queue":"scraper"},{"name":"b","queue":"scraper","after":["a"],"over":"a","payload":%}]}')`: `node "b": payload`,
	} {
		for _, deep := range both {
			text := told(r, owner, strings.Replace(call, "%", deep, 1))
			if !strings.Contains(text, field+": it is nested deeper than 500 levels") {
				t.Errorf("%.120s …: %q", call, text)
			}
		}
		for _, fine := range []string{lists(500), hidden, wide} {
			if text := told(r, owner, strings.Replace(call, "%", fine, 1)); strings.Contains(text, "nested") {
				t.Errorf("%.120s …, 500 levels: %q", call, text)
			}
		}
	}
}

func lists(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }

// told is the error of a call, or the text that it returns.
func told(r *roles, conn *pgx.Conn, sql string) string {
	r.Helper()
	results, err := conn.PgConn().Exec(r.Context(), sql).ReadAll()
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, row := range results[0].Rows {
		for _, field := range row {
			text.Write(field)
		}
	}
	return text.String()
}
