package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/notify"
	"github.com/sluice-queue/sluice/internal/saving"
)

var _ alert.Store = (*Store)(nil)

// alerting is everything that the store keeps about alerts.
type alerting struct {
	rules     map[alertKey]alert.Rule
	alerts    map[alertKey]alert.Alert
	silences  []alert.Silence
	receivers map[string]time.Time // by receiver: when a process last asked for its messages
}

// alertKey identifies a rule or an alert.
type alertKey struct{ rule, queue string }

func newAlerting() alerting {
	return alerting{
		rules: make(map[alertKey]alert.Rule), alerts: make(map[alertKey]alert.Alert), receivers: make(map[string]time.Time),
	}
}

// AlertBook reads everything that is stored about alerts.
func (s *Store) AlertBook(ctx context.Context) (alert.Book, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return alert.Book{}, err
	}
	defer leave()
	book := alert.Book{Now: s.now()}
	for _, r := range s.alerting.rules {
		book.Rules = append(book.Rules, r)
	}
	for _, a := range s.alerting.alerts {
		book.Alerts = append(book.Alerts, a)
	}
	for _, silence := range s.alerting.silences {
		if book.Now.Before(silence.Until) {
			book.Silences = append(book.Silences, silence)
		}
	}
	for name, seen := range s.alerting.receivers {
		book.Receivers = append(book.Receivers, s.receiver(name, seen))
	}
	slices.SortFunc(book.Rules, func(a, b alert.Rule) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Queue, b.Queue))
	})
	slices.SortFunc(book.Alerts, func(a, b alert.Alert) int {
		return cmp.Or(cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Queue, b.Queue))
	})
	slices.SortStableFunc(book.Silences, func(a, b alert.Silence) int { return a.Until.Compare(b.Until) })
	slices.SortFunc(book.Receivers, func(a, b alert.ReceiverStatus) int { return cmp.Compare(a.Name, b.Name) })
	return book, nil
}

func (s *Store) receiver(name string, seen time.Time) alert.ReceiverStatus {
	out := alert.ReceiverStatus{Name: name, Queue: notify.Queue(name), Seen: seen}
	var first *job
	for _, j := range s.jobs {
		if j.Queue != out.Queue || !j.live {
			continue
		}
		out.Waiting = min(out.Waiting+1, sluice.DepthLimit)
		if j.BlockedBy.IsZero() && (first == nil || j.CreatedAt.Before(first.CreatedAt)) {
			first = j
		}
	}
	if first != nil {
		out.Oldest, out.Error = first.CreatedAt, first.Error
	}
	return out
}

// SaveAlertRule stores a rule.
func (s *Store) SaveAlertRule(ctx context.Context, rule alert.Rule, act sluice.Act) (alert.Rule, error) {
	return save(ctx, s, saving.Rules, rule, act, in(s.alerting.rules, alertKey{rule.Name, rule.Queue}))
}

// DeleteAlertRule deletes a stored rule; a preset of the same name counts again.
func (s *Store) DeleteAlertRule(ctx context.Context, name, queue string, act sluice.Act) error {
	return s.strike(ctx, audit.ObjectAlert, alert.RuleName(name, queue), act, func() error { return remove(s.alerting.rules, alertKey{name, queue}) })
}

// SaveAlerts stores one evaluation: alert states, audit entries, and a job per message and receiver.
func (s *Store) SaveAlerts(ctx context.Context, round alert.Evaluation) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	for _, a := range round.Alerts {
		if s.alerting.alerts[alertKey{a.Rule, a.Queue}].Version != a.Version {
			return sluice.ErrConflict
		}
	}
	for _, a := range round.Alerts {
		a.Version++
		s.alerting.alerts[alertKey{a.Rule, a.Queue}] = a
	}
	for _, e := range round.Entries {
		s.add(e)
	}
	s.forgetAlerting(s.now())
	return s.notify(round)
}

// notify stores a job for each message and receiver, and makes the queues that are missing.
func (s *Store) notify(round alert.Evaluation) error {
	if len(round.Messages) == 0 {
		return nil
	}
	var queues []string
	for _, receiver := range slices.Sorted(maps.Keys(s.alerting.receivers)) {
		queue := notify.Queue(receiver)
		queues = append(queues, queue)
		if _, stored := s.queues[queue]; stored {
			continue
		}
		if err := s.makeQueue(queue, notify.Act()); err != nil {
			return err
		}
	}
	jobs, err := round.Jobs(queues)
	if err != nil {
		return err
	}
	receipts := make([]sluice.Receipt, len(jobs))
	for i, in := range jobs {
		receipts[i] = s.enqueue(in)
	}
	s.tally.Enqueued(jobs, receipts)
	return nil
}

// forgetAlerting deletes silences that are over, and receivers that no process asks for any more.
func (s *Store) forgetAlerting(now time.Time) {
	s.alerting.silences = slices.DeleteFunc(s.alerting.silences, func(silence alert.Silence) bool { return !now.Before(silence.Until) })
	for name, seen := range s.alerting.receivers {
		if now.Sub(seen) > alert.ReceiverKept {
			delete(s.alerting.receivers, name)
		}
	}
}

// SaveSilence stores a silence that begins now.
func (s *Store) SaveSilence(ctx context.Context, silence alert.Silence, act sluice.Act) (alert.Silence, error) {
	return save(ctx, s, saving.Silences, silence, act, home[alert.Silence]{
		stored: func() (*alert.Silence, error) {
			at := slices.IndexFunc(s.alerting.silences, func(known alert.Silence) bool { return known.ID == silence.ID })
			if at < 0 {
				return nil, nil
			}
			return &s.alerting.silences[at], nil
		},
		store: func(next alert.Silence) error {
			s.alerting.silences = append(s.alerting.silences, next)
			return nil
		},
	})
}

func (s *Store) tellSilence(silence alert.Silence, event sluice.Event, act sluice.Act) error {
	after, err := json.Marshal(silence)
	s.add(sluice.AuditEntry{
		Object: audit.ObjectAlert, Name: silence.Name(), Event: event, Actor: act.By, Reason: act.Reason, ActID: act.ID, After: after,
	})
	return err
}

// EndSilence ends a silence before its time.
func (s *Store) EndSilence(ctx context.Context, id sluice.ID, act sluice.Act) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	at := slices.IndexFunc(s.alerting.silences, func(silence alert.Silence) bool { return silence.ID == id && s.now().Before(silence.Until) })
	if at < 0 {
		if s.endedSilence(id, act) {
			return nil
		}
		return sluice.ErrNotFound
	}
	ended := s.alerting.silences[at]
	s.alerting.silences = slices.Delete(s.alerting.silences, at, at+1)
	return s.tellSilence(ended, audit.EventUnsilence, act)
}

// endedSilence reports whether an act has ended a silence.
func (s *Store) endedSilence(id sluice.ID, act sluice.Act) bool {
	return !act.ID.IsZero() && slices.ContainsFunc(s.audit, func(e sluice.AuditEntry) bool {
		var ended alert.Silence
		return e.ActID == act.ID && e.Event == audit.EventUnsilence && json.Unmarshal(e.After, &ended) == nil && ended.ID == id
	})
}

// SaveReceiver stores a receiver, and that a process asks for it now.
func (s *Store) SaveReceiver(ctx context.Context, name string) error {
	leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	s.alerting.receivers[name] = s.now()
	return nil
}
