package upkeep_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/alert/webhook"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
)

// phone is an alert receiver. It fails while down is set.
type phone struct {
	mu    sync.Mutex
	down  bool
	tries int
	heard []string
}

func (*phone) Name() string { return "phone" }

func (p *phone) Notify(_ context.Context, m alert.Message) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tries++
	if p.down {
		return errors.New("no route to phone")
	}
	p.heard = append(p.heard, string(m.Event)+" "+alert.RuleName(m.Rule, m.Queue))
	return nil
}

// told returns the messages that the phone took, and the number of calls.
func (p *phone) told() (heard string, tries int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.heard, ", "), p.tries
}

func (p *phone) set(down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = down
}

// with runs upkeep with alert receivers, until the test calls stop.
func (f *farm) with(receivers ...alert.Receiver) (stop func()) {
	return f.every(time.Second, receivers...)
}

func (f *farm) every(interval time.Duration, receivers ...alert.Receiver) (stop func()) {
	ctx, cancel := context.WithCancel(f.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- upkeep.New(f.store, upkeep.Options{Logger: quiet, Interval: interval, HeadInterval: -1, Receivers: receivers}).Run(ctx)
	}()
	return func() {
		f.Helper()
		cancel()
		if err := <-ended; err != nil {
			f.Errorf("Run returned %v", err)
		}
	}
}

// dead adds dead letters.
func (f *farm) dead(jobs int) (ids []sluice.ID) {
	f.Helper()
	for range jobs {
		id := f.add(sluice.EnqueueOptions{})
		c := f.claim()
		errs, err := f.store.Settle(f.Context(), []sluice.Settlement{{ID: id, Token: c.Token, Holder: c.Holder, Event: sluice.EventBury, Error: "closed"}})
		if err = errors.Join(append(errs, err)...); err != nil {
			f.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

func (f *farm) discard(ids []sluice.ID) {
	f.Helper()
	if err := f.client.Delete(f.Context(), ids, ada); err != nil {
		f.Fatal(err)
	}
}

const (
	fires = "firing dead-letters/payments"
	over  = "resolved dead-letters/payments"
)

func TestAlertIsToldOnceWhenItFiresAndWhenItIsOver(t *testing.T) {
	inFarm(t, func(f *farm) {
		p := &phone{}
		for range 2 { // one leads, and the other stands by
			defer f.every(5*time.Second, p)()
		}
		ids := f.dead(11)
		pass(50 * time.Second)
		if heard, _ := p.told(); heard != "" {
			f.Errorf("before a minute is over it heard %s", heard)
		}
		pass(10 * time.Minute)
		if heard, _ := p.told(); heard != fires {
			f.Errorf("it heard %q", heard)
		}
		f.discard(ids)
		pass(time.Minute)
		if heard, _ := p.told(); heard != fires+", "+over {
			f.Errorf("at the end it heard %q", heard)
		}
		entries, err := f.client.Audit(f.Context(), sluice.AuditFilter{Object: audit.ObjectAlert})
		if err != nil || len(entries) != 2 || entries[1].Event != audit.EventAlertFires || entries[0].Event != audit.EventAlertResolves {
			f.Errorf("the audit tells %+v, %v", entries, err)
		}
	})
}

func TestAlertIsPendingFromTheFirstLookWhoeverLeads(t *testing.T) {
	inFarm(t, func(f *farm) {
		p := &phone{}
		f.dead(11)
		stop := f.with(p)
		pass(40 * time.Second)
		stop()
		defer f.with(p)()
		pass(32 * time.Second)
		if heard, _ := p.told(); heard != fires {
			f.Errorf("72 s after the first look, and 32 s after that of the new leader, it heard %q", heard)
		}
	})
}

func TestReceiverThatIsDownIsToldOnceItIsBackAndHoldsNothingUp(t *testing.T) {
	inFarm(t, func(f *farm) {
		p, other := &phone{down: true}, &named{phone: &phone{}, name: "pager"}
		stop := f.every(15*time.Second, p, other)
		ids := f.dead(11)
		pass(2 * time.Minute)
		f.discard(ids)
		lost := f.add(sluice.EnqueueOptions{})
		f.claim()
		pass(90 * time.Second)
		if job := f.job(lost); job.Recoveries != 1 {
			f.Errorf("meanwhile upkeep recovered a job %d times", job.Recoveries)
		}
		if err := f.client.Cancel(f.Context(), []sluice.ID{lost}, ada); err != nil {
			f.Fatal(err)
		}
		pass(2 * time.Hour)
		if heard, _ := other.told(); heard != fires+", "+over {
			f.Errorf("the one that is up heard %q", heard)
		}
		if _, tries := p.told(); tries < 20 || tries > 80 {
			f.Errorf("in two hours it was called %d times", tries)
		}
		stop()
		p.set(false)
		defer f.with(p)() // another process finds in the store the messages that were not sent
		pass(6 * time.Minute)
		if heard, _ := p.told(); heard != fires+", "+over {
			f.Errorf("once it was back it heard %q", heard)
		}
	})
}

// named is a phone of another name.
type named struct {
	*phone
	name string
}

func (n *named) Name() string { return n.name }

func TestWhatCannotBeToldForAWeekIsGivenUpAndAudited(t *testing.T) {
	inFarm(t, func(f *farm) {
		p := &phone{down: true}
		stop := f.every(20*time.Minute, p)
		f.dead(11)
		pass(24 * time.Hour)
		stop() // upkeep would run each second for a week; see notification_test.go
		pass(alert.NotificationKept - 24*time.Hour)
		defer f.every(20*time.Minute, p)()
		pass(3 * time.Hour)
		entries, err := f.client.Audit(f.Context(), sluice.AuditFilter{Object: audit.ObjectAlert, Name: "dead-letters/payments"})
		if err != nil || len(entries) != 2 || entries[0].Event != audit.EventAlertNotNotified || !strings.Contains(entries[0].Reason, "no route to phone") {
			f.Errorf("the audit tells %+v, %v", entries, err)
		}
		book, err := alert.Read(f.Context(), f.store)
		if err != nil || len(book.Receivers) != 1 || book.Receivers[0].Waiting != 0 {
			f.Errorf("receivers are %+v, %v", book.Receivers, err)
		}
	})
}

func TestSilencedAlertIsNotToldUntilTheSilenceIsOver(t *testing.T) {
	inFarm(t, func(f *farm) {
		p := &phone{}
		defer f.every(5*time.Second, p)()
		if _, err := alert.StartSilence(f.Context(), f.store, alert.Silence{Rule: "dead-letters", During: 20 * time.Minute}, ada); err != nil {
			f.Fatal(err)
		}
		f.dead(11)
		pass(19 * time.Minute)
		if heard, _ := p.told(); heard != "" {
			f.Errorf("while it was silenced it heard %q", heard)
		}
		pass(2 * time.Minute)
		if heard, _ := p.told(); heard != fires {
			f.Errorf("then it heard %q", heard)
		}
	})
}

func TestTimeWithoutUpkeepIsToldAfterwards(t *testing.T) {
	inFarm(t, func(f *farm) {
		p := &phone{}
		stop := f.with(p)
		pass(time.Minute)
		stop()
		pass(time.Hour)
		defer f.with(p)()
		pass(time.Minute)
		if heard, _ := p.told(); heard != "firing no-upkeep, resolved no-upkeep" {
			f.Errorf("it heard %q", heard)
		}
	})
}

func TestRuleThatIsDisabledWhileItFiresIsOver(t *testing.T) {
	inFarm(t, func(f *farm) {
		p := &phone{}
		defer f.with(p)()
		f.dead(11)
		pass(2 * time.Minute)
		if _, _, err := alert.SetRule(f.Context(), f.store, "dead-letters", "", ada, func(r *alert.Rule) error { r.Disabled = true; return nil }); err != nil {
			f.Fatal(err)
		}
		pass(time.Minute)
		if heard, _ := p.told(); heard != fires+", "+over {
			f.Errorf("it heard %q", heard)
		}
	})
}

// hung is a receiver that panics.
type hung struct{ phone }

func (*hung) Name() string { return "hung" }

func (h *hung) Notify(ctx context.Context, m alert.Message) error {
	_ = h.phone.Notify(ctx, m)
	panic("no signal at ann.maria.lee.smith@example.com")
}

func TestAReceiverThatPanicsIsTriedAgainAndDelaysNoOther(t *testing.T) {
	inFarm(t, func(f *farm) {
		broken, p := &hung{}, &phone{}
		defer f.with(broken, p)()
		f.dead(11)
		pass(time.Hour)
		if heard, _ := p.told(); heard != fires {
			f.Errorf("the other receiver heard %q", heard)
		}
		if _, tries := broken.told(); tries < 2 {
			f.Errorf("the receiver that panics was told %d times, want it to be tried again", tries)
		}
		page, err := f.client.Jobs(f.Context(), sluice.JobFilter{Queue: "sluice.notify.hung"})
		if err != nil || len(page.Jobs) != 1 || !strings.HasPrefix(page.Jobs[0].Error, "the receiver panicked: no signal at ") || strings.Contains(page.Jobs[0].Error, "ann.maria") {
			f.Errorf("the message is %+v: %v", page.Jobs, err)
		}
	})
}

// leaky is a receiver whose error has an address at the place where the audit cuts the error.
type leaky struct{}

func (leaky) Name() string { return "leaky" }

func (leaky) Notify(context.Context, alert.Message) error {
	return errors.New("no such user ann.maria.lee.smith@example.com" + strings.Repeat(", so", 100))
}

func TestReceiverThatIsGivenUpLeavesNoPartOfASecret(t *testing.T) {
	inFarm(t, func(f *farm) {
		stop := f.every(20*time.Minute, leaky{})
		f.dead(11)
		pass(time.Hour)
		stop()
		pass(alert.NotificationKept)
		defer f.every(20*time.Minute, leaky{})()
		pass(3 * time.Hour)
		entries, err := f.client.Audit(f.Context(), sluice.AuditFilter{Object: audit.ObjectAlert})
		given := 0
		for _, entry := range entries {
			if entry.Event == audit.EventAlertNotNotified {
				given++
			}
			if strings.Contains(entry.Reason, "ann.maria") {
				f.Errorf("the audit says %q", entry.Reason)
			}
		}
		if err != nil || given == 0 {
			f.Errorf("the audit tells %+v, %v", entries, err)
		}
	})
}

// hook is the server of a webhook. It refuses requests while down is set.
type hook struct {
	phone
	*testing.T
	secret []byte
	events chan string
}

func (h *hook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var m alert.Message
	if err = errors.Join(err, webhook.Verify(h.secret, r.Header.Get(webhook.SignatureHeader), body, time.Now(), time.Minute), json.Unmarshal(body, &m)); err != nil {
		h.Error(err)
	}
	if err := h.Notify(r.Context(), m); err != nil {
		w.WriteHeader(http.StatusServiceUnavailable)
		h.events <- "refused"
		return
	}
	h.events <- string(m.Event) + " " + m.Rule + "/" + m.Queue
}

// TestAlertsReachWebhooksForReal runs on SQLite and the real clock. One of two webhooks is down at first.
func TestAlertsReachWebhooksForReal(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	f := &farm{t, store, sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})}
	if _, _, err := alert.SetRule(t.Context(), f.store, "dead-letters", "", ada, func(r *alert.Rule) error {
		r.Threshold, r.For = 0, 0
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	secret := []byte("hush")
	hooks := []*hook{{T: t, secret: secret, events: make(chan string, 10)}, {T: t, secret: secret, events: make(chan string, 10)}}
	hooks[1].set(true)
	var receivers []alert.Receiver
	for _, h := range hooks {
		server := httptest.NewServer(h)
		defer server.Close()
		receiver, err := webhook.New(server.URL+"/services/token", webhook.Options{Secret: secret})
		if err != nil {
			t.Fatal(err)
		}
		receivers = append(receivers, receiver)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	options := upkeep.Options{Logger: quiet, Receivers: receivers, HeadInterval: -1, Interval: 50 * time.Millisecond, AlertInterval: 200 * time.Millisecond}
	go func() { ended <- upkeep.New(store, options).Run(ctx) }()
	ids := f.dead(1)
	hears(t, hooks[0], fires)
	hears(t, hooks[1], "refused")
	hooks[1].set(false)
	f.discard(ids)
	hears(t, hooks[0], over)
	hears(t, hooks[1], fires)
	hears(t, hooks[1], over)
	cancel()
	if err := errors.Join(<-ended, store.Close()); err != nil {
		t.Error(err)
	}
}

// hears waits until the webhook gets a message. The webhook may refuse the same message several times.
func hears(t *testing.T, h *hook, want string) {
	t.Helper()
	for end := time.After(10 * time.Minute); ; {
		select {
		case got := <-h.events:
			if got == "refused" && want != got {
				continue
			}
			if got != want {
				t.Errorf("the webhook got %q, want %q", got, want)
			}
			return
		case <-end:
			t.Fatalf("the webhook never got %q", want)
		}
	}
}
