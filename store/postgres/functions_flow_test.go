package postgres_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice"
	graph "github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/store/postgres"
)

// startBySQL starts a flow with the function, and returns the flow's ID.
func startBySQL(t *testing.T, store *postgres.Store, f graph.Flow) (sluice.ID, error) {
	t.Helper()
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var id [16]byte
	err = store.Pool().QueryRow(t.Context(), "select sluice.start_flow(flow => $1::text::json, new_queue => true)", string(text)).Scan(&id)
	return id, err
}

// anyFlow draws a random flow with maps, rules per edge and all options of nodes.
func anyFlow(r *rand.Rand, nodes int) graph.Flow {
	f := graph.Flow{ID: sluice.NewID(), Name: "drawn", Deadline: time.Date(2090, 1, 2, 3, 4, 5, r.IntN(2)*6000, time.UTC)}
	rules := []sluice.AfterFailure{"", sluice.FailureCancels, sluice.FailureRuns, sluice.FailureWaits}
	for i := range nodes {
		n := graph.Node{
			Name: fmt.Sprint("n.", i), Queue: fmt.Sprint("q", r.IntN(3)), Priority: r.IntN(11), MaxAttempts: r.IntN(3),
			Tenant: []string{"", "acme"}[r.IntN(2)], OrderKey: []string{"", "", "o"}[r.IntN(3)], OnFailureOf: map[string]sluice.AfterFailure{},
		}
		if r.IntN(2) == 0 {
			n.Payload, n.Labels = json.RawMessage(`{ "a": [1, "ü"] }`), map[string]string{"of": "ann"}
		}
		for _, k := range r.Perm(i)[:r.IntN(min(i, 4)+1)] {
			name := f.Nodes[k].Name
			n.After = append(n.After, name)
			if rule := rules[r.IntN(4)]; rule != "" {
				n.OnFailureOf[name] = rule
			}
		}
		if len(n.After) > 0 {
			n.OnFailure = rules[r.IntN(4)]
			if over := n.After[0]; r.IntN(3) == 0 && cmp.Or(n.OnFailureOf[over], n.OnFailure) != sluice.FailureRuns {
				n.Over, n.Most = over, r.IntN(20)
			}
		}
		f.Nodes = append(f.Nodes, n)
	}
	r.Shuffle(len(f.Nodes), func(i, k int) { f.Nodes[i], f.Nodes[k] = f.Nodes[k], f.Nodes[i] })
	return f
}

// asStored returns the columns of a job that programs and the function must store alike. Payloads are compared as JSON
// values.
func asStored(t *testing.T, store sluice.Store, id sluice.ID) map[string]any {
	t.Helper()
	job, err := store.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var payload any
	switch job.Queue {
	case graph.EndQueue:
		var f graph.Flow
		err, payload = json.Unmarshal(job.Payload, &f), &f
		for i, n := range f.Nodes {
			if len(n.OnFailureOf) == 0 {
				f.Nodes[i].OnFailureOf = nil
			}
			if len(n.After) == 0 {
				f.Nodes[i].After = nil
			}
		}
		byName := make(map[string]graph.Node)
		for _, n := range f.Nodes {
			byName[n.Name] = n
		}
		payload = []any{f.Name, f.Deadline.UTC(), byName}
	default:
		err = json.Unmarshal(job.Payload, &payload)
		if m, is := payload.(map[string]any); is && m["node"] != nil {
			delete(m["node"].(map[string]any), "on_failure_of") // one stores an empty value, the other none
			if m["over_map"] == false {
				delete(m, "over_map")
			}
			m["deadline"], err = time.Parse(time.RFC3339Nano, m["deadline"].(string))
		}
	}
	if err != nil {
		t.Fatalf("payload %s: %v", job.Payload, err)
	}
	blocked := job.BlockedBy
	if job.OrderKey != "" {
		blocked = sluice.ID{} // nodes that do not wait for each other have no order
	}
	return map[string]any{
		"queue": job.Queue, "payload": payload, "tenant": job.Tenant, "priority": job.Priority, "labels": job.Labels, "most attempts": job.MaxAttempts,
		"expires": job.ExpiresAt.UTC(), "order key": job.OrderKey, "after": job.After, "rule": job.AfterFailure, "rules": job.AfterFailures,
		"state": job.State, "blocked": blocked,
	}
}

// TestFunctionsStoreTheFlowThatProgramsStore draws flows, and stores each with the function and with the package.
func TestFunctionsStoreTheFlowThatProgramsStore(t *testing.T) {
	t.Parallel()
	bySQL, byGo := openStore(t, migrated.Copy(t)), openStore(t, migrated.Copy(t))
	stored := 0
	for seed := range uint64(30) {
		f := anyFlow(rand.New(rand.NewPCG(seed, 17)), 1+int(seed)%12)
		id, err := startBySQL(t, bySQL, f)
		if err != nil || id != f.ID {
			t.Fatalf("by SQL: %s, %v, want %s", id, err, f.ID)
		}
		if _, err := graph.Start(t.Context(), byGo, f); err != nil {
			t.Fatal(err)
		}
		stored += len(f.Nodes) + 1
		ids := []sluice.ID{f.ID}
		for _, n := range f.Nodes {
			ids = append(ids, graph.NodeID(f.ID, n.Name))
		}
		for _, id := range ids {
			got, want := asStored(t, bySQL, id), asStored(t, byGo, id)
			for what := range want {
				if !reflect.DeepEqual(got[what], want[what]) {
					t.Errorf("seed %d, job %s: %s is %v by SQL, and %v by Go", seed, id, what, got[what], want[what])
				}
			}
		}
		if again, err := startBySQL(t, bySQL, f); err != nil || again != f.ID {
			t.Errorf("started again: %s, %v", again, err)
		}
	}
	for _, store := range []*postgres.Store{bySQL, byGo} {
		var jobs int
		if err := store.Pool().QueryRow(t.Context(), "select count(*) from sluice.job").Scan(&jobs); err != nil || jobs != stored {
			t.Errorf("%d jobs, %v; want %d", jobs, err, stored)
		}
	}
}

// TestFunctionsRefuseTheFlowsThatProgramsRefuse has a flow for each rule. The function and the package must both name
// the node, and store nothing.
func TestFunctionsRefuseTheFlowsThatProgramsRefuse(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	const a = `{"name":"a","queue":"q"}`
	for nodes, says := range map[string]string{
		``:                                       "nodes",
		`1`:                                      "",
		a + `,` + a:                              `node "a": name`,
		`{"queue":"q"}`:                          `node "": name`,
		`{"name":"a b"}`:                         `node "a b": name`,
		`{"name":"a"}`:                           `node "a": queue`,
		`{"name":"a","queue":1}`:                 "",
		`{"name":"a","queue":"sluice.flow.end"}`: `node "a": queue`,
		`{"name":"a","queue":"q","colour":"red"}`:                                                                                   "",
		`{"name":"a","queue":"q","after":["b"]}`:                                                                                    `node "a": after`,
		`{"name":"a","queue":"q","after":["a"]}`:                                                                                    `after`,
		`{"name":"a","queue":"q","after":"a"}`:                                                                                      "",
		`{"name":"a","queue":"q","priority":11}`:                                                                                    `node "a": priority`,
		`{"name":"a","queue":"q","priority":"x"}`:                                                                                   "",
		`{"name":"a","queue":"q","max_attempts":-1}`:                                                                                `node "a": max_attempts`,
		`{"name":"a","queue":"q","labels":{"flow":"x"}}`:                                                                            `node "a": labels`,
		`{"name":"a","queue":"q","over":"b"}`:                                                                                       `node "a": over`,
		`{"name":"a","queue":"q","most":2}`:                                                                                         `node "a": most`,
		`{"name":"a","queue":"q","tenant":"a\u0007b"}`:                                                                              `node "a": tenant`,
		a + `,{"name":"b","queue":"q","after":["a","a"]}`:                                                                           `node "b": after`,
		a + `,{"name":"b","queue":"q","after":["a"],"on_failure":"shrug"}`:                                                          `node "b": `,
		a + `,{"name":"b","queue":"q","after":["a"],"on_failure_of":{"c":"run"}}`:                                                   `node "b": on_failure_of`,
		a + `,{"name":"b","queue":"q","after":["a"],"on_failure_of":{"a":"shrug"}}`:                                                 `node "b": on_failure_of`,
		a + `,{"name":"b","queue":"q","after":["a"],"over":"a","on_failure":"run"}`:                                                 `node "b": over`,
		a + `,{"name":"b","queue":"q","after":["a"],"over":"a","on_failure":"run","on_failure_of":{"a":"run"}}`:                     `node "b": over`,
		a + `,{"name":"b","queue":"q","after":["a"],"over":"a","payload":[{"{{index}}":1}]}`:                                        `node "b": payload`,
		a + `,{"name":"b","queue":"q","after":["a"],"over":"a","most":10001}`:                                                       `node "b": most`,
		a + `,{"name":"b","queue":"q","payload":"` + strings.Repeat("x", sluice.DefaultSettings().PayloadLimit) + `"}`:              `node "b": payload`,
		a + `,{"name":"b","queue":"q","after":["d"]},{"name":"c","queue":"q","after":["b"]},{"name":"d","queue":"q","after":["c"]}`: `wait for each other`,
	} {
		text := `{"name":"f","nodes":[` + nodes + `]}`
		var f graph.Flow
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&f)
		if err == nil {
			_, err = graph.Start(t.Context(), store, f)
		}
		if err == nil || !strings.Contains(strings.ReplaceAll(strings.ReplaceAll(err.Error(), "invalid ", ""), "flow: name", `flow: node "": name`), says) {
			t.Errorf("%.200s by Go: %v, want %q", nodes, err, says)
		}
		_, err = store.Pool().Exec(t.Context(), "select sluice.start_flow(flow => $1::text::json, new_queue => true)", text)
		if !isCode(err, "SL004") || !strings.Contains(err.Error(), says) {
			t.Errorf("%.200s by SQL: %v, want %q", nodes, err, says)
		}
	}
	for _, text := range []string{`[]`, `{"nodes":[` + a + `]}`, `{"name":"f","nodes":[` + a + `],"deadline":"2001-01-01T00:00:00Z"}`, `{"name":"f","nodes":[` + a + `],"id":"7"}`, `{"name":"f","nodes":[` + a + `],"more":1}`, `{"name":"f","nodes":[{"name":"a","queue":"q","payload":"\u0000"}]}`} {
		if _, err := store.Pool().Exec(t.Context(), "select sluice.start_flow(flow => $1::text::json, new_queue => true)", text); !isCode(err, "SL004") {
			t.Errorf("%s: %v, want SL004", text, err)
		}
	}
	var jobs int
	if err := store.Pool().QueryRow(t.Context(), "select count(*) from sluice.job").Scan(&jobs); err != nil || jobs != 0 {
		t.Errorf("%d jobs are stored, %v; want none", jobs, err)
	}
}

// TestAFlowBySQLCommitsWithItsTransaction starts a flow with a map. Roles of other programs work the jobs off, and
// upkeep ends the flow.
func TestAFlowBySQLCommitsWithItsTransaction(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	producer, worker := r.as(r.producer), r.as(r.worker)
	const text = `{"name":"scrape","nodes":[{"name":"sum","queue":"scraper","after":["pages","list"]},{"name":"list","queue":"scraper"},{"name":"pages","queue":"scraper","after":["list"],"over":"list","payload":{"page":"{{item}}"}}]}`
	start := `select sluice.start_flow(flow => '` + text + `')::text`
	tx, err := producer.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), start); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if left := value[int](r, r.as("postgres"), "select count(*) from sluice.job"); left != 0 {
		t.Errorf("%d jobs are left after the rollback", left)
	}
	id := mustID(t, value[string](r, producer, start))
	claim := func() (job string) {
		return value[string](r, worker, `select concat_ws(' ', id, token, payload -> 'page') from sluice.claim(queues => '{scraper}', holder => 'w')`)
	}
	complete := func(job, result string) {
		parts := strings.Fields(job)
		value[bool](r, worker, fmt.Sprintf("select true from sluice.complete(id => '%s', token => '%s', result => '%s')", parts[0], parts[1], result))
	}
	goOn := func() {
		for range 2 {
			if _, err := graph.Work(t.Context(), r.owner, "upkeep:1:x", nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	complete(claim(), `["x","y"]`)
	goOn()
	for range 2 {
		job := claim()
		complete(job, strings.Fields(job)[2])
	}
	goOn()
	sum := claim()
	read := func(node string) string {
		return fmt.Sprintf("select string_agg(concat_ws(' ', element, state, result), ', ' order by element) from sluice.node_results(job_id => '%s', node => '%s')", strings.Fields(sum)[0], node)
	}
	if got := value[string](r, worker, read("pages")); got != `0 completed "x", 1 completed "y"` {
		t.Errorf("results of the map: %s", got)
	}
	if got := value[string](r, worker, read("list")); got != `completed ["x","y"]` {
		t.Errorf("result of a node: %s", got)
	}
	for _, query := range []string{read("sum"), read("none")} {
		if _, err := worker.Exec(t.Context(), query); !isCode(err, "SL005") {
			t.Errorf("%s: %v, want SL005", query, err)
		}
	}
	complete(sum, `2`)
	goOn()
	if tree, err := graph.Read(t.Context(), r.owner, id); err != nil || tree.State != graph.Completed {
		t.Errorf("the flow is %+v, %v", tree.Listed, err)
	}
}

// TestAFlowBySQLObeysTheRightsOfItsCaller uses a role that may enqueue into only one of the flow's queues.
func TestAFlowBySQLObeysTheRightsOfItsCaller(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	_, err := r.as(r.producer).Exec(t.Context(), `select sluice.start_flow(flow => '{"name":"f","nodes":[{"name":"a","queue":"scraper"},{"name":"b","queue":"payments"}]}')`)
	var server *pgconn.PgError
	if !errors.As(err, &server) || server.Code != "42501" || !strings.Contains(server.Message, `node "b"`) {
		t.Errorf("a flow over a foreign queue: %v, want 42501", err)
	}
	_, err = r.as(r.producer).Exec(t.Context(), `select sluice.start_flow(flow => '{"name":"f","nodes":[{"name":"a","queue":"scrapre"}]}')`)
	if err == nil {
		t.Error("a flow over a misspelt queue was stored")
	}
	// A caller's forged labels must not show the results of another flow.
	id, err := graph.Start(t.Context(), r.owner, graph.Flow{Name: "secret", Nodes: []graph.Node{{Name: "a", Queue: "payments"}}})
	if err != nil {
		t.Fatal(err)
	}
	forged := value[string](r, r.as(r.producer), fmt.Sprintf(`select id::text from sluice.enqueue(queue => 'scraper', payload => '1', labels => '{"flow":"%s","node":"b"}')`, id))
	if _, err := r.as(r.worker).Exec(t.Context(), fmt.Sprintf("select * from sluice.node_results(job_id => '%s', node => 'a')", forged)); !isCode(err, "SL005") {
		t.Errorf("a forged label: %v, want SL005", err)
	}
	var jobs int
	if err := r.owner.Pool().QueryRow(t.Context(), "select count(*) from sluice.job").Scan(&jobs); err != nil || jobs != 3 {
		t.Errorf("%d jobs, %v; want the secret flow and the forged job", jobs, err)
	}
}

// TestAFlowBySQLMayHaveThousandsOfEdges stores a flow of 500 nodes. Each node runs after the 20 nodes before it.
func TestAFlowBySQLMayHaveThousandsOfEdges(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	f := graph.Flow{ID: sluice.NewID(), Name: "dense"}
	for i := range 520 {
		n := graph.Node{Name: fmt.Sprint("n", i), Queue: "q"}
		for k := max(0, i-20); k < i; k++ {
			n.After = append(n.After, f.Nodes[k].Name)
		}
		f.Nodes = append(f.Nodes, n)
	}
	if _, err := startBySQL(t, store, f); err != nil {
		t.Fatal(err)
	}
	var edges int
	if err := store.Pool().QueryRow(t.Context(), "select count(*) from sluice.job_after where job_id <> $1", [16]byte(f.ID)).Scan(&edges); err != nil || edges != 190+500*20 {
		t.Errorf("%d edges, %v; want 10,190", edges, err)
	}
}
