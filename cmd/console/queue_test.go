package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/cmd/console"
)

func TestAQueueShowsWhereItsSettingsComeFrom(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.set("mail", "the <b>bank</b> allows it", func(q *sluice.Settings) { q.Rate, q.MaxAttempts = sluice.Rate{Jobs: 5, Per: time.Second}, 4 })
	s.enqueue(sluice.NewJob{Queue: "mail"})
	page := s.has("/queues/mail", "<strong>5/s</strong>", "bob: the &lt;b&gt;bank&lt;/b&gt; allows it", "-<b>bank", "1 to 10000", "How many jobs may start per time",
		"after failure 1: 2s to 3s", "failure 4 buries the job", "<del>0</del> → <ins>5/s</ins>", "starts at once now", "1 ready", "sluice settings get mail")
	if changed, _, _ := strings.Cut(page, "Settings that have their defaults"); strings.Contains(changed, `id="setting-lease"`) {
		t.Error("a default is among the changed settings")
	}
	if _, status := s.page("/queues/none"); status != http.StatusNotFound {
		t.Errorf("an unknown queue: %d", status)
	}
}

func TestASettingIsChangedForAWhileAndUndone(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.set("mail", "", func(*sluice.Settings) {})
	values := url.Values{"queue": {"mail"}, "setting": {"rate"}, "value": {"7/s"}, "reason": {"catch up"}}
	s.has("/do/set-setting?queue=mail&setting=lease&value=60s", "How long a claim holds", " From 100ms to 1d", " Default: 1m.")
	if dialog, _ := s.page("/do/set-setting?" + values.Encode()); !strings.Contains(dialog, "sluice settings set mail rate=7/s --reason=&#39;catch up&#39;") {
		t.Errorf("the dialog lacks the command: %s", dialog)
	}
	answer, status := s.do("set-setting", values, nil)
	if status != http.StatusNoContent || !strings.Contains(answer, "/do/undo-settings") {
		t.Fatalf("the setting got %d %s, want 204 and an undo", status, answer)
	}
	values.Set("value", "9/s")
	values.Set("for", "30m")
	if answer, status := s.do("set-setting", values, nil); status != http.StatusNoContent {
		t.Fatalf("for a while: %d %s", status, answer)
	}
	s.has("/queues/mail", "<strong>9/s</strong>", "Scheduled changes", "revert rate")
	queue, err := s.client.Queue(t.Context(), "mail")
	if err != nil {
		t.Fatal(err)
	}
	if planned, err := changes.List(queue); err != nil || len(planned) != 1 {
		t.Fatalf("%+v, %v, want a revert", planned, err)
	}
	if answer, status := s.do("undo-settings", url.Values{"queue": {"mail"}}, nil); status != http.StatusNoContent {
		t.Fatalf("undo: %d %s", status, answer)
	}
	s.has("/queues/mail", "<strong>7/s</strong>")
	history, err := s.client.Audit(t.Context(), sluice.AuditFilter{Object: "queue", Name: "mail"})
	if err != nil {
		t.Fatal(err)
	}
	first := fmt.Sprint(history[len(history)-1].Seq)
	s.has("/queues/mail", "/do/undo-settings-to?queue=mail&amp;version="+first, "-undo-settings-to?queue=mail&amp;version="+fmt.Sprint(history[0].Seq))
	back := url.Values{"queue": {"mail"}, "version": {first}}
	if dialog, _ := s.page("/do/undo-settings-to?" + back.Encode()); !strings.Contains(dialog, "sluice settings undo mail --to="+first) {
		t.Errorf("the dialog lacks the command: %s", dialog)
	}
	if answer, status := s.do("undo-settings-to", back, nil); status != http.StatusNoContent || !strings.Contains(answer, "/do/undo-settings") {
		t.Fatalf("back to the first version: %d %s", status, answer)
	}
	if queue, err = s.client.Queue(t.Context(), "mail"); err != nil || !queue.Settings.Rate.IsZero() {
		t.Errorf("the rate is %s (%v), want none as at first", queue.Settings.Rate, err)
	}
	if text, _ := s.do("undo-settings-to", url.Values{"queue": {"mail"}, "version": {"9999"}}, nil); !strings.Contains(text, "9999 must be the number of a change") {
		t.Errorf("a version that is not there: %s", text)
	}
	values.Set("value", "fast")
	if text, _ := s.do("set-setting", values, nil); !strings.Contains(text, "is not a rate") {
		t.Errorf("a wrong value: %s", text)
	}
	window := url.Values{"queue": {"mail"}, "setting": {"rate"}, "value": {"1/s"}, "from": {"22:00"}, "to": {"06:00"}, "zone": {"UTC"}, "days": {"mon, tue"}}
	if answer, status := s.do("schedule-setting", window, nil); status != http.StatusNoContent {
		t.Fatalf("at hours: %d %s", status, answer)
	}
	s.has("/queues/mail", "22:00 to 06:00 UTC on mon, tue")
}

func TestViewersOfAQueueMayNotChangeIt(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	s.has("/queues/mail", `disabled="true" title="the role viewer may not do this">Change`, "-/do/set-setting")
}

func TestAnEngineIsTriedAndAskedForItsRuns(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.set("orders", "", func(q *sluice.Settings) { q.Engine = "local" })
	s.has("/queues/orders", "Check the engine", "Start a run to try it", "Reconcile with the engine")
	text, _ := s.do("try-engine", url.Values{"queue": {"orders"}}, nil)
	if !strings.Contains(text, "no worker waits at the task queue") {
		t.Errorf("the trial says %q, want that nobody would run it", text)
	}
	runs, err := sluice.NewClient(s.runs, sluice.ClientOptions{}).Queues(t.Context(), sluice.QueueFilter{})
	if err != nil || len(runs) == 0 {
		t.Errorf("the engine has %d queues of runs (%v), want that of the trial", len(runs), err)
	}
	if text, _ = s.do("reconcile-engine", url.Values{"queue": {"orders"}}, nil); !strings.Contains(text, "The engine was asked about 0 jobs.") {
		t.Errorf("the reconciliation says %q", text)
	}
}

func TestManyQueuesHavePages(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	for i := range 51 {
		s.set(fmt.Sprintf("queue-%03d", i), "", func(*sluice.Settings) {})
	}
	s.has("/queues", "queue-000", "queue-049", "-queue-050", `href="/queues?after=queue-049"`)
	s.has("/queues?after=queue-000", "queue-050", "-id=\"queue-queue-000", "-rel=\"next\"")
}

func TestAQueueBehindTheFirst200IsNotForgotten(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	for i := range 201 {
		s.set(fmt.Sprintf("queue-%03d", i), "", func(q *sluice.Settings) { q.Rate = sluice.Rate{Jobs: i + 1, Per: time.Second} })
	}
	s.enqueue(sluice.NewJob{Queue: "queue-000"})
	s.has("/", "There are more")
	s.has("/jobs", `ready <span class="amount">1&#43;<`)
	s.has("/waves?queue=queue-200", "now 201/s", "<option selected>queue-200<")
}

func TestAQueueShowsHowItsJitterSpreadsStarts(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.set("mail", "", func(q *sluice.Settings) { q.Jitter = 20 * time.Second })
	s.set("reports", "", func(*sluice.Settings) {})
	if page := s.has("/queues/mail", "A claimed job starts up to 20s later, by chance: of 100 that are claimed at once, about 5/s start."); strings.Count(page, "<circle ") < 40 {
		t.Error("the picture has fewer than 40 starts")
	}
	s.has("/queues/reports", "-A claimed job starts up to")
}

func TestAQueueWithAnEngineShowsItsDispatchCycles(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.set("orders", "", func(q *sluice.Settings) { q.Engine = "local" })
	s.set("mail", "", func(*sluice.Settings) {})
	s.has("/queues/orders", "No cycle is known")
	s.has("/queues/mail", "-Dispatch cycles")
	other := open(t, access.RoleViewer, console.Options{})
	other.set("orders", "", func(q *sluice.Settings) { q.Engine = "local" })
	for _, counts := range []string{
		`{"claimed":9,"dispatched":9,"buried":0,"released":0,"held":0,"took":100000000}`, // by an older version
		`{"claimed":41,"dispatched":37,"buried":1,"released":3,"held":0,"took":250000000,"claiming":20000000,"starting":200000000,"settling":0}`,
	} {
		entry := sluice.AuditEntry{Actor: "host:7:cc", Object: "queue", Name: "orders", Event: "dispatch batch", After: []byte(counts)}
		if err := other.store.AppendAudit(t.Context(), []sluice.AuditEntry{entry}); err != nil {
			t.Fatal(err)
		}
	}
	other.has("/queues/orders", ">host:7:cc<", `<td class="number">41</td><td class="number">37</td><td class="number">1</td><td class="number">3</td><td class="number">0</td><td class="number">250ms</td><td class="number">20ms</td><td class="number">200ms</td><td class="number">0ms</td>`, `<td class="number">100ms</td><td class="number">not known</td>`, "name=orders", "event=dispatch", "sluice audit --object queue --name orders --event &#39;dispatch batch&#39;")
}
