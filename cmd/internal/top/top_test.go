package top

import (
	"context"
	"errors"
	"flag"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/remote"
)

var update = flag.Bool("update", false, "write the screens that the tests compare with")

// busy is a snapshot of a system that has an example of everything on the screen.
func busy() snapshot {
	at := time.Date(2026, 12, 1, 16, 2, 11, 0, time.UTC)
	queue := func(name string, change func(*sluice.Settings)) sluice.Queue {
		q := sluice.Queue{Name: name, Settings: sluice.DefaultSettings(), Now: at}
		if change != nil {
			change(&q.Settings)
		}
		return q
	}
	minute := func(s stat.Summary) stat.Summary {
		s.From, s.To = at.Add(-time.Minute), at
		return s
	}
	return snapshot{
		at: at, took: 12 * time.Millisecond, tended: true,
		queues: []queueRow{
			{workers: 2, Queue: queue("payments", func(s *sluice.Settings) { s.Concurrency, s.Rate = 200, sluice.RatePerSecond(500) }), Summary: minute(stat.Summary{
				Counted: true, Depth: sluice.Depth{Ready: 12430, Dead: 3}, OldestAge: 182 * time.Second, InFlight: 120, Rate: 398,
				Counts: stat.Counts{Enqueued: 24612}, Run: stat.Quantiles{P95: 41 * time.Millisecond},
			})},
			{Queue: queue("mail", nil), Summary: minute(stat.Summary{Depth: sluice.Depth{Ready: 7}, OldestAge: 90 * time.Minute})},
			{workers: 1, Queue: queue("reports-of-every-customer", func(s *sluice.Settings) { s.Paused = true }), Summary: minute(stat.Summary{Depth: sluice.Depth{Ready: 100000}})},
		},
		holders: []presence.Holder{
			{ID: "web-1:4711:28f61421", Role: presence.RoleWorker, Queues: []string{"payments", "reports-of-every-customer"}, Slots: 100, Busy: 97, Seen: at.Add(-time.Second)},
			{ID: "web-2:12:0a0b0c0d", Role: presence.RoleDispatcher, Queues: []string{"payments"}, Seen: at, Conditions: []presence.Condition{{Kind: presence.ConditionEngineAway, Text: "breaker open: the engine cannot be reached"}}},
			{ID: "web-1:4712:99887766", Role: presence.RoleUpkeep, Seen: at},
		},
		tenants: tenantRows([]sluice.Flow{{Queue: "payments", Tenants: []sluice.TenantFlow{
			{Tenant: "globex", InFlight: 80, EffectiveLimits: sluice.EffectiveLimits{Concurrency: 100, Rate: sluice.RatePerSecond(20)}},
			{Tenant: "acme", InFlight: 5, EffectiveLimits: sluice.EffectiveLimits{Concurrency: 5}},
			{Tenant: "nobody-in-particular", InFlight: 2},
		}}}),
		alerts: alertsShown([]alert.Alert{
			{Rule: "backlog", Queue: "mail", State: alert.Pending, Severity: health.SeverityWarning, Value: 1200, Since: at.Add(-time.Minute)},
			{Rule: "quiet", Queue: "mail", State: alert.Inactive},
			{Rule: "breaker-open", Queue: "payments", State: alert.Firing, Severity: health.SeverityCritical, Value: 1, Since: at.Add(-time.Hour)},
		}),
	}
}

// keys presses keys one after the other. The commands that they return do not run.
func keys(m *model, pressed ...string) {
	codes := map[string]rune{"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown, "backspace": tea.KeyBackspace}
	for _, key := range pressed {
		press := tea.KeyPressMsg{Code: []rune(key)[0], Text: key}
		if code, special := codes[key]; special {
			press = tea.KeyPressMsg{Code: code}
		}
		m.Update(press)
	}
}

func TestScreens(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		width, height int
		prepare       func(m *model)
	}{
		"overview": {80, 24, func(*model) {}},
		"tenants":  {80, 24, func(m *model) { keys(m, "tab") }},
		"alerts":   {80, 24, func(m *model) { keys(m, "tab", "tab") }},
		"help":     {80, 24, func(m *model) { keys(m, "?") }},
		"question": {80, 24, func(m *model) { keys(m, "down", "p", "b", "a", "n", "k") }},
		"unreachable": {80, 24, func(m *model) {
			m.Update(snapshotMsg{err: errors.New("store unavailable: dial tcp 127.0.0.1:5432: connection refused")})
			m.since = time.Now().Add(-3*time.Hour - 20*time.Second)
		}},
		"inspect": {80, 24, func(m *model) {
			keys(m, "enter")
			from := m.snapshot.at.Add(-time.Hour)
			d := detail{queue: "payments", hour: stat.Summary{
				Counted: true, Queue: "payments", SuccessRate: 0.998, LeaseExpiryRate: 0.0012, Counts: stat.Counts{Claimed: 155000, Completed: 154000, Dead: 309, Failed: 311},
				Wait: stat.Quantiles{P50: 2 * time.Second, P95: time.Minute, P99: 3 * time.Minute},
				Run:  stat.Quantiles{P50: 8 * time.Millisecond, P95: 41 * time.Millisecond, P99: 1200 * time.Millisecond},
			}}
			for i := range 60 {
				d.hour.Slots = append(d.hour.Slots, stat.Stat{At: from.Add(time.Duration(i) * time.Minute), Counts: stat.Counts{Enqueued: int64(i * i), Completed: int64(60 - i)}})
			}
			d.dead = []sluice.Job{{Error: "the bank says: no such account", FinishedAt: time.Now().Add(-5*time.Hour - 20*time.Second)}}
			m.Update(detailMsg{detail: d})
		}},
		"wide": {132, 40, func(*model) {}},
		"more": {80, 24, func(m *model) { m.snapshot.more = true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t.Context(), Options{Label: "postgres://host/jobs", Width: of.width, Height: of.height})
			m.Update(snapshotMsg{snapshot: busy()})
			of.prepare(m)
			compare(t, name, m, of.width, of.height)
		})
	}
}

func compare(t *testing.T, name string, m *model, width, height int) {
	t.Helper()
	screen := ansi.Strip(m.screen())
	lines := strings.Split(screen, "\n")
	if len(lines) != height {
		t.Errorf("the screen has %d lines, the terminal %d", len(lines), height)
	}
	for _, line := range lines {
		if lipgloss.Width(line) > width {
			t.Errorf("a line is wider than the terminal: %q", line)
		}
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(screen+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if screen+"\n" != string(want) {
		t.Errorf("the screen is\n%s\nwant\n%s", screen, want)
	}
}

func TestMoreQueuesThanLinesAreScrolled(t *testing.T) {
	t.Parallel()
	m := newModel(t.Context(), Options{})
	s := busy()
	for i := range 100 {
		q := s.queues[1]
		q.Name = "mail-" + string(rune('a'+i/26)) + string(rune('a'+i%26))
		s.queues = append(s.queues, q)
	}
	m.Update(snapshotMsg{snapshot: s})
	for range 70 {
		keys(m, "down")
	}
	screen := ansi.Strip(m.screen())
	if !strings.Contains(screen, "▸ "+m.chosen) || !strings.Contains(screen, "more") {
		t.Errorf("the chosen queue %s is not on the screen, or not that there are more:\n%s", m.chosen, screen)
	}
}

func TestAQuestionCanBeMendedAndLeft(t *testing.T) {
	t.Parallel()
	m := newModel(t.Context(), Options{})
	m.Update(snapshotMsg{snapshot: busy()})
	keys(m, "p", "a", "b", "backspace", "q")
	if m.asks == nil || m.asks.answer != "aq" {
		t.Fatalf("the open question is %+v, want the answer `aq`", m.asks)
	}
	keys(m, "esc")
	if m.asks != nil {
		t.Error("Esc does not leave a question")
	}
}

// shop is a system with one queue.
func shop(t *testing.T) (*sluice.Client, sluice.Store) {
	t.Helper()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.EnsureQueue(t.Context(), "payments", sluice.DefaultSettings(), sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	return client, store
}

// overHTTP serves a store, and opens a remote store at the server.
func overHTTP(t *testing.T, behind sluice.Store) (*sluice.Client, sluice.Store) {
	t.Helper()
	server := httptest.NewServer(httpapi.New(behind, httpapi.Options{NoLogin: true}))
	t.Cleanup(server.Close)
	store, err := remote.Open(t.Context(), server.URL, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return sluice.NewClient(store, sluice.ClientOptions{}), store
}

func TestAQueueIsPausedByKeysWithAReason(t *testing.T) {
	t.Parallel()
	for name, through := range map[string]func(*testing.T, sluice.Store) (*sluice.Client, sluice.Store){
		"database": func(_ *testing.T, store sluice.Store) (*sluice.Client, sluice.Store) {
			return sluice.NewClient(store, sluice.ClientOptions{}), store
		},
		"server": overHTTP,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, store := shop(t)
			client, store := through(t, store)
			pausesByKeys(t, client, store)
		})
	}
}

func pausesByKeys(t *testing.T, client *sluice.Client, store sluice.Store) {
	t.Helper()
	m := newModel(t.Context(), Options{Client: client, Store: store, Queues: allOf(client), By: "ada", Window: time.Minute})
	m.Update(m.look()())
	keys(m, "p", "b", "a", "n", "k")
	_, pause := m.Update(tea.KeyPressMsg{Code: tea.KeyEnter})
	_, look := m.Update(pause())
	m.Update(look())

	queues, err := client.Queues(t.Context(), sluice.QueueFilter{})
	if err != nil {
		t.Fatal(err)
	}
	by, err := explain.PausedBy(t.Context(), store, queues[0])
	if err != nil {
		t.Fatal(err)
	}
	if !queues[0].Settings.Paused || by.Actor != "ada" || by.Reason != "bank" {
		t.Errorf("the queue is paused: %t, by %q because %q", queues[0].Settings.Paused, by.Actor, by.Reason)
	}
	if screen := ansi.Strip(m.screen()); !strings.Contains(screen, "▸ payments      paused") || !strings.Contains(screen, "paused payments") {
		t.Errorf("the screen does not tell of it:\n%s", screen)
	}
}

// work gives a shop queued, claimed and dead jobs, a worker, and an alert that fires.
func work(t *testing.T, client *sluice.Client, store sluice.Store) {
	t.Helper()
	for range 5 {
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "payments", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}}); err != nil {
			t.Fatal(err)
		}
	}
	holder := presence.Holder{ID: "web-1:4711:28f61421", Role: presence.RoleWorker, Queues: []string{"payments"}, Slots: 4, Busy: 1}
	if _, err := presence.Given(store).Heartbeat(t.Context(), holder); err != nil {
		t.Fatal(err)
	}
	claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "payments", Limit: 2, Holder: holder.ID, Lease: time.Hour, Token: sluice.NewToken()})
	if err != nil {
		t.Fatal(err)
	}
	dies := sluice.Settlement{ID: claimed.Jobs[0].ID, Token: claimed.Jobs[0].Token, Event: sluice.EventBury, Error: "no such account"}
	if errs, err := store.Settle(t.Context(), []sluice.Settlement{dies}); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	fires := alert.Alert{Rule: "backlog", Queue: "payments", State: alert.Firing, Severity: health.SeverityWarning, Value: 1200, Since: time.Now().Add(-time.Hour)}
	if err := alert.Given(store).SaveAlerts(t.Context(), alert.Evaluation{Alerts: []alert.Alert{fires}}); err != nil {
		t.Fatal(err)
	}
}

func TestTheScreenIsTheSameThroughAServer(t *testing.T) {
	t.Parallel()
	client, store := shop(t)
	work(t, client, store)
	passing := regexp.MustCompile(`\d+(\.\d+)?(ms|s|µs)\b|\d\d:\d\d:\d\d|\s+`) // figures that depend on the time of the read
	screensOf := func(client *sluice.Client, store sluice.Store) (screens []string) {
		m := newModel(t.Context(), Options{Client: client, Store: store, Queues: allOf(client), Window: time.Minute, Width: 100, Height: 30})
		m.Update(m.look()())
		for _, key := range []string{"tab", "tab", "enter"} {
			screens = append(screens, passing.ReplaceAllString(ansi.Strip(m.screen()), " "))
			keys(m, key)
		}
		m.Update(m.lookClosely()())
		return append(screens, passing.ReplaceAllString(ansi.Strip(m.screen()), " "))
	}
	remote, server := overHTTP(t, store)
	screens := [2][]string{screensOf(client, store), screensOf(remote, server)}
	for range 100 { // until no statistics come between the two looks
		if slices.Equal(screens[0], screens[1]) {
			break
		}
		screens = [2][]string{screensOf(client, store), screensOf(remote, server)}
	}
	for n, want := range []string{"web-1:4711:28f61421", "acme", "backlog", "no such account"} {
		if here, there := screens[0][n], screens[1][n]; here != there || !strings.Contains(here, want) {
			t.Errorf("screen %d, which has %q, through a server is\n%s\nand of the database\n%s", n, want, there, here)
		}
	}
}

// terminal reports each write to a channel.
type terminal struct{ wrote chan struct{} }

func (s terminal) Write(p []byte) (int, error) {
	select {
	case s.wrote <- struct{}{}:
	default:
	}
	return len(p), nil
}

func TestRunShowsTheScreenUntilThePersonLeaves(t *testing.T) {
	t.Parallel()
	in, typed := io.Pipe()
	out := terminal{make(chan struct{}, 1)}
	ended := make(chan error, 1)
	client, store := shop(t)
	go func() {
		ended <- Run(t.Context(), Options{Client: client, Store: store, Queues: allOf(client), In: in, Out: out, Width: 80, Height: 24})
	}()
	<-out.wrote
	if _, err := io.WriteString(typed, "q"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestAQueueWithNothingDueHasNoOldestJob(t *testing.T) {
	t.Parallel()
	if got := (queueRow{}).oldest(); got != "-" {
		t.Errorf("the oldest due is %q, want -", got)
	}
	m := newModel(t.Context(), Options{})
	m.snapshot = snapshot{queues: []queueRow{{Queue: sluice.Queue{Name: "mail"}}}}
	m.chosen = "mail"
	if text := strings.Join(m.inspected(), "\n"); !strings.Contains(text, "oldest due -") {
		t.Errorf("an empty queue is shown as\n%s", text)
	}
}

// allOf gives all queues of a store.
func allOf(client *sluice.Client) func(context.Context) ([]sluice.Queue, bool, error) {
	return func(ctx context.Context) ([]sluice.Queue, bool, error) {
		queues, err := client.Queues(ctx, sluice.QueueFilter{})
		return queues, false, err
	}
}
