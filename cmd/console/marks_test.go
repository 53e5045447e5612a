package console_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/alert/webhook"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/console"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/memory"
)

// fires stores a firing alert about dead letters for each queue.
func (s *site) fires(queues ...string) {
	s.t.Helper()
	now := time.Now()
	var round alert.Evaluation
	for _, queue := range queues {
		a := alert.Alert{Rule: "dead-letters", Queue: queue, State: alert.Firing, Since: now, PendingSince: now, FiredAt: now, At: now, Value: 9, Severity: "warning"}
		round.Alerts = append(round.Alerts, a)
		round.Entries = append(round.Entries, sluice.AuditEntry{Object: audit.ObjectAlert, Name: a.Name(), Event: audit.EventAlertFires, Actor: "upkeep"})
	}
	if err := alert.Given(s.store).SaveAlerts(s.t.Context(), round); err != nil {
		s.t.Fatal(err)
	}
}

func TestTheStripNamesFewAlerts(t *testing.T) {
	t.Parallel()
	for firing, says := range map[int][]string{1: {"Alert dead-letters/queue-0", "see the alert<"}, 5: {"5 alerts: dead-letters/queue-0, dead-letters/queue-1, ", "see the alerts<", `<span class="badge">5</span>`}} {
		s := open(t, access.RoleViewer, console.Options{})
		var queues []string
		for i := range firing {
			queues = append(queues, fmt.Sprint("queue-", i))
			s.enqueue(sluice.NewJob{Queue: queues[i]})
		}
		s.fires(queues...)
		if shown := strings.Count(s.has("/queues", says...), "see the alert"); shown != 1 {
			t.Errorf("of %d alerts, the strip shows %d", firing, shown)
		}
	}
}

func TestARuleIsAddedAndIsInTheHistory(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	s.has("/alerts", "New rule", "sluice export prometheus", "-Last of all rules")
	s.has("/do/new-rule", "<option>oldest_age</option>")
	values := url.Values{"rule": {"old-mails"}, "metric": {"oldest_age"}, "op": {">"}, "threshold": {"300"}, "hold": {"5m"}, "severity": {"error"}, "queue": {"mail"}, "reason": {"the contract"}}
	if text, status := s.do("new-rule", values, nil); status != 204 {
		t.Fatalf("the new rule: %d %s", status, text)
	}
	s.has("/alerts", "old-mails", "oldest_age &gt; 300 for 5m", "Last of all rules", "the contract")
}

func TestTheStripNamesWhatPeopleStopped(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleOperator, console.Options{})
	for _, queue := range []string{"mail", "reports"} {
		s.enqueue(sluice.NewJob{Queue: queue})
	}
	s.has("/jobs", "-see the queue")
	s.do("pause-queue", url.Values{"queue": {"mail"}, "reason": {"the provider is down"}}, nil)
	s.has("/jobs", "The queue mail is paused", `<a href="/queues/mail">see the queue<`)
	s.do("pause-queue", url.Values{"queue": {"reports"}, "reason": {"as mail"}}, nil)
	s.do("new-limit", url.Values{"limit": {"bank"}, "rate": {"5/s"}, "reason": {"their rule"}}, nil)
	s.do("close-limit", url.Values{"limit": {"bank"}, "reason": {"they asked"}}, nil)
	s.has("/jobs", "2 queues are paused: mail, reports", `<a href="/queues">see the queues<`, "The limit bank is closed", `<a href="/limits">see the limit<`)
	s.do("open-limit", url.Values{"limit": {"bank"}}, nil)
	s.has("/jobs", "-see the limit")
}

func TestAlertsThatFireComeFirst(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	var round alert.Evaluation
	for i, state := range []alert.State{alert.Silenced, alert.Pending, alert.Firing} {
		round.Alerts = append(round.Alerts, alert.Alert{Rule: "dead-letters", Queue: fmt.Sprint("queue-", i), State: state, Severity: "error", Since: time.Now(), At: time.Now()})
	}
	if err := alert.Given(s.store).SaveAlerts(t.Context(), round); err != nil {
		t.Fatal(err)
	}
	text := s.has("/alerts", "alert-dead-letters-queue-0")
	at := func(queue string) int { return strings.Index(text, "alert-dead-letters-"+queue) }
	if at("queue-2") > at("queue-1") || at("queue-1") > at("queue-0") {
		t.Errorf("the alert that fires is not above the pending and the silenced one: at %d, %d, %d", at("queue-2"), at("queue-1"), at("queue-0"))
	}
}

func TestChartsMarkDeploysAndAlerts(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	s.enqueue(sluice.NewJob{Queue: "sms"})
	s.count("mail", 3*time.Minute, stat.Counts{Enqueued: 10})
	for i, h := range []presence.Holder{
		{ID: "a:1:a", Version: "v1.2.0", Queues: []string{"mail"}},
		{ID: "a:2:a", Version: "v1.3.0", Queues: []string{"mail"}},
		{ID: "a:3:a", Version: "v1.3.0", Queues: []string{"mail", "sms"}},
		{ID: "a:4:a", Version: "v9.9.9"},
	} {
		h.Role, h.Started = presence.RoleWorker, time.Now().Add(time.Duration(i-10)*time.Minute)
		if _, err := presence.Given(s.store).Heartbeat(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	s.fires("mail", "sms")
	s.has("/queues/mail", "3 marks in it", `deploy: <a href="/workers">version v1.2.0 started first here, and 1 of its processes work now`, "version v1.3.0 started first here, and 2 of", "-v9.9.9",
		`alert: <a href="/alerts/dead-letters?queue=mail">alert firing: dead-letters/mail</a>`, "-dead-letters/sms</a>")
	s.has("/", "4 marks in it", "dead-letters/sms</a>")
}

// TestChartsBeginWhereSomebodyCounted looks at a queue whose statistics began 3 minutes ago.
func TestChartsBeginWhereSomebodyCounted(t *testing.T) {
	t.Parallel()
	s := open(t, access.RoleViewer, console.Options{})
	s.enqueue(sluice.NewJob{Queue: "mail"})
	s.count("mail", 3*time.Minute, stat.Counts{Enqueued: 10})
	s.has("/queues/mail?window=15m", "What happened before "+time.Now().UTC().Add(-3*time.Minute).Truncate(stat.Fine).Format("15:04")+" UTC is not known")
	_, rows, _ := strings.Cut(s.has("/queues/mail?window=15m&csv=flow"), "\n")
	unknown, known, _ := strings.Cut(rows, ",1,0,0,0\n")
	if n := strings.Count(unknown, "Z,,,,\n"); n < 60 || n != strings.Count(unknown, "\n") || strings.Count(known, "Z,0,0,0,0\n") < 10 || strings.Contains(known, ",,") {
		t.Errorf("%d slots are not known, want all before the first count, and none after it:\n%s", n, rows)
	}
}

// TestAReceiverIsTested sends a test message to a webhook that takes it, to one that refuses it, and to one that is another
// process's.
func TestAReceiverIsTested(t *testing.T) {
	t.Parallel()
	var status atomic.Int32
	status.Store(http.StatusNoContent)
	said := make(chan string, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		said <- string(text)
		w.WriteHeader(int(status.Load()))
	}))
	t.Cleanup(hook.Close)
	receiver, err := webhook.New(hook.URL+"/a-secret-path", webhook.Options{})
	if err != nil {
		t.Fatal(err)
	}
	store := memory.New(memory.Options{})
	if err := alert.Given(store).SaveReceiver(t.Context(), receiver.Name()); err != nil {
		t.Fatal(err)
	}
	s := openOver(t, store, access.Caller{Name: "ann", Role: access.RoleOperator}, console.Options{Environment: "production"}, httpapi.Options{Receivers: []alert.Receiver{receiver}})
	s.has("/alerts", receiver.Name(), `data-act="test-receiver"`)
	test := func(name string) string {
		text, _ := s.do("test-receiver", url.Values{"receiver": {name}}, nil)
		return text
	}
	if text := test(receiver.Name()); !strings.Contains(text, "The receiver took the test message") {
		t.Errorf("got %s, want that it was taken", text)
	}
	if message := <-said; !strings.Contains(message, "a test by ann in the console: nothing is wrong") {
		t.Errorf("the receiver got %s", message)
	}
	status.Store(http.StatusForbidden)
	if text := test(receiver.Name()); !strings.Contains(text, "did not take the test message: ") || !strings.Contains(text, "403") || strings.Contains(text, "a-secret-path") {
		t.Errorf("got %s, want the refusal, without the address", text)
	}
	<-said
	hook.Close()
	if text := test(receiver.Name()); !strings.Contains(text, "did not take the test message: ") || strings.Contains(text, "a-secret-path") {
		t.Errorf("got %s, want that it cannot be reached, without the address", text)
	}
	if text := test("webhook elsewhere"); !strings.Contains(text, "this server does not have the receiver webhook elsewhere") {
		t.Errorf("got %s, want where to test it", text)
	}
	viewer := openOver(t, store, access.Caller{Name: "vic", Role: access.RoleViewer}, console.Options{}, httpapi.Options{Receivers: []alert.Receiver{receiver}})
	viewer.has("/alerts", "the role viewer may not do this")
}
