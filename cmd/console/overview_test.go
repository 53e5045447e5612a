package console_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
)

// has checks that a page contains the texts, and lacks those that begin with a minus. On a busy machine a page may be too slow
// a few times.
func (s *site) has(path string, texts ...string) string {
	s.t.Helper()
	page, status := s.page(path)
	for tries := 1; status == http.StatusGatewayTimeout && tries < 5; tries++ {
		page, status = s.page(path)
	}
	if status != 200 {
		s.t.Errorf("%s: got %d, want 200", path, status)
	}
	for _, text := range texts {
		unwanted, isUnwanted := strings.CutPrefix(text, "-")
		if isUnwanted && strings.Contains(page, unwanted) {
			s.t.Errorf("%s says %q", path, unwanted)
		} else if !isUnwanted && !strings.Contains(page, text) {
			s.t.Errorf("%s lacks %q", path, text)
		}
	}
	return page
}

// count stores statistics of a queue for a past slot.
func (s *site) count(queue string, ago time.Duration, counts stat.Counts) {
	s.t.Helper()
	one := stat.Stat{Queue: queue, At: time.Now().UTC().Add(-ago).Truncate(stat.Fine), Every: stat.Fine, Counts: counts}
	one.Run.Add(2 * time.Second)
	if err := stat.Given(s.store).AddStats(s.t.Context(), "test of "+queue, []stat.Stat{one}); err != nil {
		s.t.Fatal(err)
	}
}

// level stores what upkeep saw of a queue in the past.
func (s *site) level(queue string, ago time.Duration, level stat.Level) {
	s.t.Helper()
	one := stat.Stat{Queue: queue, At: time.Now().UTC().Add(-ago).Truncate(stat.Fine), Every: stat.Fine, Level: &level}
	if err := stat.Given(s.store).AddStats(s.t.Context(), "upkeep of "+queue, []stat.Stat{one}); err != nil {
		s.t.Fatal(err)
	}
}

// counted makes upkeep's count of the jobs that fall due.
func (s *site) counted() {
	s.t.Helper()
	if _, err := forecast.Recount(s.t.Context(), s.store); err != nil {
		s.t.Fatal(err)
	}
}

// set changes settings of a queue, and makes the queue first if it is missing.
func (s *site) set(queue, reason string, change func(*sluice.Settings)) {
	s.t.Helper()
	act := sluice.Act{By: "bob", Reason: reason}
	if _, err := s.client.EnsureQueue(s.t.Context(), queue, sluice.DefaultSettings(), act); err != nil {
		s.t.Fatal(err)
	}
	_, err := s.client.ChangeQueue(s.t.Context(), queue, act, func(q *sluice.Queue) error {
		change(&q.Settings)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func TestTheFirstPageSaysHowToBegin(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{})
	s.has("/", "No queue yet", "export SLUICE_DB="+s.URL+"<", "sluice enqueue demo", "sluice work demo -- cat", "sluice settings set demo rate=10/s", "-tiles")
}

func TestAnAdminFillsAnEmptyStoreWithSampleData(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		role   access.Role
		filled int
	}{{access.RoleAdmin, 1}, {access.RoleOperator, 0}} {
		filled := 0
		s := open(t, c.role, console.Options{Base: "/sluice", Samples: func(context.Context) error { filled++; return nil }})
		page, _ := s.page("/sluice/")
		if shown := strings.Contains(page, `action="/sluice/samples"`); shown != (c.filled > 0) {
			t.Errorf("%s sees the button: %t", c.role, shown)
		}
		for site, want := range map[string]int{"cross-site": 0, "same-origin": c.filled} {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/sluice/samples", nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Sec-Fetch-Site", site)
			filled = 0
			if text, status := s.send(request); filled != want || (status == http.StatusOK) != (want > 0) {
				t.Errorf("%s, %s: filled %d times, want %d: %d %.200s", c.role, site, filled, want, status, text)
			}
		}
	}
	open(t, access.RoleAdmin, console.Options{}).has("/", "-Fill with sample data")
}

func TestTheOverviewShowsFiguresOfAllQueues(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleAdmin, console.Options{})
	s.set("mail", "the provider's contract", func(q *sluice.Settings) { q.Rate = sluice.Rate{Jobs: 4, Per: time.Second} })
	for range 3 {
		s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}})
	}
	s.count("mail", 3*time.Minute, stat.Counts{Enqueued: 60, Claimed: 30, Completed: 9, Dead: 1, Failed: 5})
	s.level("mail", 4*time.Minute, stat.Level{Ready: 1234, OldestSeconds: 75})
	s.counted()
	for _, path := range []string{"/", "/queues/mail"} {
		s.has(path, "At most 1 234 jobs were ready", "the oldest had been due for 1m15s", "Ready jobs, the most in each slot, as a table")
		s.has(path+"?csv=ready", ",1234\n")
		s.has(path+"?csv=oldest", ",75\n")
	}
	s.has("/", "Ready", "Oldest ready", "of 4/s", "90.0 %", "60 came in, 9 completed and 1 died", "5 attempts failed", `class="spark-limit"`, `class="heat-4"`,
		"No worker serves mail", `href="/tenants/acme"`, "1 mark in it: settings, deploys and alerts", "setting: <a href=\"/audit?name=mail&amp;object=queue\">mail: change, rate 0 → 4/s (bob)</a>", "-no limit of all queues",
		`data-spoken="ready 3"`, `data-spoken="dead 0"`, `<span class="hint">started per second, in the last hour, with the limit</span>`)
	s.has("/queues/mail", "No worker serves mail, which has jobs that are due. Start one: sluice work mail -- PROGRAM")
	s.has("/tenants/acme", `href="/jobs?q=tenant%3Aacme&amp;sort=oldest&amp;state=ready"`, `href="/jobs?q=tenant%3Aacme&amp;state=dead"`)
	for _, window := range []string{"15m", "6h", "24h", "7d"} {
		s.has("/?window="+window, "60 came in", window+`" aria-current="true"`)
	}
	s.has("/?from="+time.Now().UTC().Add(-time.Hour).Format(time.RFC3339)+"&to="+time.Now().UTC().Add(-30*time.Minute).Format(time.RFC3339), "gaps are not zeros", "-60 came in")
}

func TestUpkeepServesTheQueuesOfSluiceItself(t *testing.T) {
	t.Parallel()
	for _, upkeep := range []bool{false, true} {
		s := open(t, access.RoleAdmin, console.Options{})
		if _, err := flow.Start(t.Context(), s.store, flow.Flow{Name: "squares", Nodes: []flow.Node{{Name: "list", Queue: "lists"}, {Name: "squares", Queue: "squares", After: []string{"list"}, Over: "list"}}}); err != nil {
			t.Fatal(err)
		}
		claim := s.claim("lists")[0]
		s.settle(sluice.Settlement{ID: claim.ID, Token: claim.Token, Event: sluice.EventComplete, Result: []byte("[1]")})
		says := []string{"No upkeep runs, which works on " + flow.MapQueue, "-sluice work " + flow.MapQueue}
		if upkeep {
			says[0] = "-No upkeep runs"
			if _, err := presence.Given(s.store).Heartbeat(t.Context(), presence.Holder{ID: "a:1:a", Role: presence.RoleUpkeep}); err != nil {
				t.Fatal(err)
			}
		}
		s.has("/", says...)
		s.has("/queues", "<td>upkeep</td>")
	}
}

func TestChartsAreTablesToo(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	s.count("mail", 3*time.Minute, stat.Counts{Enqueued: 10})
	page := s.has("/?window=15m", "csv=flow", `aria-label="In and out, as a table"`)
	if !strings.Contains(page, "csv=flow&amp;window=15m") {
		t.Error("the address of the figures forgets the window")
	}
	text := s.has("/?window=15m&csv=flow", "time,enqueued (jobs/s),started (jobs/s)", ",1,0,0,0\n")
	if lines := strings.Count(text, "\n"); lines < 80 || lines > 92 {
		t.Errorf("15 minutes have %d lines", lines)
	}
}

func TestNobodyCountingIsAGapAndNoZero(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	s.has("/", "not counted", "gaps are not zeros")
	s.has("/?csv=flow", "Z,,,,\n")
}

func TestBoundedViewersSeeTheirsAlone(t *testing.T) {
	t.Parallel()
	queue := openAs(t, access.Caller{Name: "ann", Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"mail"}}}, console.Options{})
	tenant := openAs(t, access.Caller{Name: "ann", Role: access.RoleViewer, Bounds: access.Bounds{Tenants: []string{"acme", "eu.*"}}}, console.Options{})
	for _, s := range []*site{queue, tenant} {
		for name, owner := range map[string]string{"mail": "acme", "secret": "globex"} {
			s.enqueue(sluice.NewJob{Queue: name, EnqueueOptions: sluice.EnqueueOptions{Tenant: owner}})
			s.count(name, 3*time.Minute, stat.Counts{Enqueued: 7})
		}
		s.counted()
	}
	queue.has("/", `id="queue-mail"`, "7 came in", "-secret", "-globex")
	queue.has("/queues", `id="queue-mail"`, "-secret")
	queue.has("/waves", "-secret")
	for _, path := range []string{"/queues/secret", "/waves?queue=secret"} {
		if text, status := queue.page(path); status != 404 || strings.Contains(text, "ready") {
			t.Errorf("%s: got %d, want 404 without a word about the queue", path, status)
		}
	}
	tenant.has("/", `href="/tenants/acme"`, "those that match eu.*", "-secret")
	tenant.has("/tenants/acme", "In and out", "-globex")
	if _, status := tenant.page("/tenants/globex"); status != 404 {
		t.Errorf("another tenant: %d", status)
	}
}

func TestTheOverviewShowsActsAndNotEachMove(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	id := s.enqueue(sluice.NewJob{Queue: "mail"})
	s.set("mail", "the <script>alert(1)</script> contract", func(q *sluice.Settings) { q.Lease = 2 * time.Minute })
	if err := s.client.Cancel(t.Context(), []sluice.ID{id}, sluice.Act{By: "bob", Reason: "a move of a job"}); err != nil {
		t.Fatal(err)
	}
	s.has("/", "the &lt;script&gt;alert(1)&lt;/script&gt; contract", "<del>1m</del> → <ins>2m</ins>", "-a move of a job", "-<script>alert")
}

func TestTenantsHaveAnyName(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	const name = `"><img src=x onerror=alert(1)>/a b?c`
	s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: name}})
	s.counted()
	page := s.has("/tenants", "-<img", "&gt;&lt;img src=x")
	_, rest, _ := strings.Cut(page, `<th scope="row"><a href="/tenants/`)
	link, _, _ := strings.Cut(rest, `"`)
	s.has("/tenants/"+strings.ReplaceAll(link, "&amp;", "&"), "-<img", "&gt;&lt;img src=x", "1 due")
}

// beats tells the store that a process lives.
func (s *site) beats(h presence.Holder) {
	s.t.Helper()
	if _, err := presence.Given(s.store).Heartbeat(s.t.Context(), h); err != nil {
		s.t.Fatal(err)
	}
}

func TestWhenDueJobsAreDoneIsSaidOnlyIfSomebodyTakesThem(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set      func(*sluice.Settings)
		serves   bool
		jobs     int
		cell     string
		overview []string
	}{
		"nobody":        {func(*sluice.Settings) {}, false, 1, `<span class="warn">nobody takes them</span>`, []string{"No worker serves mail", "sluice work mail -- PROGRAM"}},
		"no dispatcher": {func(q *sluice.Settings) { q.Engine = "temporal" }, false, 1, `<span class="warn">nobody takes them</span>`, []string{"No dispatcher serves mail, which has jobs that are due. Start one: sluice dispatch mail --temporal"}},
		"some worker":   {func(*sluice.Settings) {}, true, 1, "about now", []string{"-No worker serves"}},
		"a slow rate":   {func(q *sluice.Settings) { q.Rate = sluice.Rate{Jobs: 1, Per: time.Hour} }, true, 2, "<time ", []string{"-No worker serves", "-about now"}},
		"paused":        {func(q *sluice.Settings) { q.Paused = true }, false, 1, `<span class="warn">never by the present limits</span>`, []string{"-No worker serves"}},
		"none is due":   {func(*sluice.Settings) {}, false, 0, `<span class="none">—</span>`, []string{"-No worker serves"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t, access.RoleViewer, console.Options{})
			s.set("mail", "", c.set)
			for range c.jobs {
				s.enqueue(sluice.NewJob{Queue: "mail"})
			}
			if c.serves {
				s.beats(presence.Holder{ID: "h:1:x", Role: presence.RoleWorker, Queues: []string{"mail"}, Slots: 2})
			}
			s.counted()
			s.has("/", append(c.overview, "<td>"+c.cell)...)
			s.has("/queues/mail", append(c.overview, "<dt>Due jobs done</dt><dd>"+c.cell)...)
		})
	}
}

func TestRunsAtEnginesAreNoSlotsOfWorkers(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	for range 3 {
		s.enqueue(sluice.NewJob{Queue: "orders"})
	}
	for _, c := range s.claim("orders") {
		s.settle(sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventDispatch, Ref: "run of " + c.ID.String()})
	}
	s.beats(presence.Holder{ID: "h:1:x", Role: presence.RoleWorker, Queues: []string{"mail"}, Slots: 2, Busy: 1})
	s.has("/", "1 of 2 slots of workers busy, 3 runs at engines", "-3 of 2")
}

func TestTheOverviewListsTheTenantsThatWaitLongest(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	at := time.Now().UTC().Truncate(stat.Fine)
	for tenant, waited := range map[string]time.Duration{"patient": 90 * time.Second, "served": time.Second} {
		one := stat.Stat{Queue: "mail", Tenant: tenant, At: at, Every: stat.Fine, Counts: stat.Counts{Claimed: 1}}
		one.Wait.Add(waited)
		if err := stat.Given(s.store).AddStats(t.Context(), "test of "+tenant, []stat.Stat{one}); err != nil {
			t.Fatal(err)
		}
	}
	for tenant, due := range map[string]int{"patient": 1, "served": 3} {
		for range due {
			s.enqueue(sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant}})
		}
	}
	s.counted()
	page := s.has("/", "Tenants whose jobs wait the longest")
	if patient, served := strings.Index(page, `id="tenant-patient"`), strings.Index(page, `id="tenant-served"`); patient < 0 || served < patient {
		t.Errorf("the tenants come at %d and %d, want the one that waits longer first", patient, served)
	}
}

func TestTheFirstSettingsOfAQueueAreShown(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	settings := sluice.DefaultSettings()
	settings.Engine = "local"
	if _, err := s.client.EnsureQueue(t.Context(), "orders", settings, sluice.Act{By: "bob", Reason: "runs elsewhere"}); err != nil {
		t.Fatal(err)
	}
	s.has("/", `<span class="mono">engine</span>`, "<ins>local</ins>", `-<span class="mono">lease</span>`)
	s.has("/queues/orders", "<ins>local</ins>")
}
