package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/saving"
)

var _ alert.Store = (*Store)(nil)

//go:embed sql/alert_rules.sql
var alertRulesSQL string

//go:embed sql/alert_rule.sql
var alertRuleSQL string

//go:embed sql/alert_rule_save.sql
var alertRuleSaveSQL string

//go:embed sql/alert_rule_delete.sql
var alertRuleDeleteSQL string

//go:embed sql/alerts.sql
var alertsSQL string

//go:embed sql/alert_save.sql
var alertSaveSQL string

//go:embed sql/alert_receivers.sql
var alertReceiversSQL string

//go:embed sql/alert_silences.sql
var alertSilencesSQL string

//go:embed sql/alert_silence_save.sql
var alertSilenceSaveSQL string

//go:embed sql/alert_silence.sql
var alertSilenceSQL string

//go:embed sql/alert_silence_end.sql
var alertSilenceEndSQL string

//go:embed sql/alert_silence_ended.sql
var alertSilenceEndedSQL string

// AlertBook reads everything that is stored about alerts.
func (s *Store) AlertBook(ctx context.Context) (book alert.Book, err error) {
	err = s.read(ctx, "read alerts", func(tx runner) (err error) {
		at := now()
		book = alert.Book{Now: timeOf(&at)}
		if book.Rules, err = list(tx, scanAlertRule, alertRulesSQL); err != nil {
			return err
		}
		if book.Alerts, err = list(tx, scanAlert, alertsSQL); err != nil {
			return err
		}
		if book.Silences, err = list(tx, scanSilence, alertSilencesSQL, at); err != nil {
			return err
		}
		book.Receivers, err = list(tx, scanReceiver, alertReceiversSQL, sluice.DepthLimit)
		return err
	})
	return book, err
}

func scanAlertRule(rows *sql.Rows) (alert.Rule, error) {
	var r alert.Rule
	var holds, window, changed int64
	err := rows.Scan(&r.Name, &r.Queue, &r.Metric, &r.Op, &r.Threshold, &r.RateShare, &holds, &window, &r.Severity, &r.Covers, &r.Summary, &r.Runbook,
		&r.Disabled, &r.Version, &changed, &r.ChangedBy, &r.Reason)
	r.For, r.Window, r.ChangedAt = time.Duration(holds)*time.Millisecond, time.Duration(window)*time.Millisecond, timeOf(&changed)
	return r, err
}

func scanAlert(rows *sql.Rows) (alert.Alert, error) {
	var a alert.Alert
	var since int64
	var pending, fired, resolved, at *int64
	err := rows.Scan(&a.Rule, &a.Queue, &a.State, &since, &pending, &fired, &resolved, &a.Told, &a.Value, &a.Threshold, &a.Severity, &at, &a.Detail,
		&a.Version)
	a.Since, a.PendingSince, a.FiredAt, a.ResolvedAt, a.At = timeOf(&since), timeOf(pending), timeOf(fired), timeOf(resolved), timeOf(at)
	return a, err
}

func scanSilence(rows *sql.Rows) (alert.Silence, error) {
	var out alert.Silence
	var id []byte
	var created, until int64
	err := rows.Scan(&id, &out.Rule, &out.Queue, &created, &until, &out.By, &out.Reason)
	out.ID, out.CreatedAt, out.Until = idOf(id), timeOf(&created), timeOf(&until)
	return out, err
}

func scanReceiver(rows *sql.Rows) (alert.ReceiverStatus, error) {
	var r alert.ReceiverStatus
	var seen int64
	var oldest *int64
	err := rows.Scan(&r.Name, &r.Queue, &seen, &r.Waiting, &oldest, &r.Error)
	r.Seen, r.Oldest = timeOf(&seen), timeOf(oldest)
	return r, err
}

// SaveAlertRule stores a rule and its audit entry.
func (s *Store) SaveAlertRule(ctx context.Context, rule alert.Rule, act sluice.Act) (alert.Rule, error) {
	return save(ctx, s, "save rule", saving.Rules, rule, act, home[alert.Rule]{
		stored: func(tx runner) ([]alert.Rule, error) {
			return list(tx, scanAlertRule, alertRuleSQL, rule.Name, rule.Queue)
		},
		store: func(tx runner, next alert.Rule) error {
			_, err := tx.exec(alertRuleSaveSQL, next.Name, next.Queue, next.Metric, next.Op, next.Threshold, next.RateShare, next.For.Milliseconds(),
				next.Window.Milliseconds(), string(next.Severity), string(next.Covers), next.Summary, next.Runbook, next.Disabled, next.Version,
				micros(next.ChangedAt), next.ChangedBy, next.Reason)
			return err
		},
	})
}

// DeleteAlertRule deletes a stored rule and audits this. A preset of the same name counts again.
func (s *Store) DeleteAlertRule(ctx context.Context, name, queue string, act sluice.Act) error {
	return s.strike(ctx, "delete rule", audit.ObjectAlert, alert.RuleName(name, queue), act, deleting(alertRuleDeleteSQL, name, queue))
}

// SaveSilence stores a silence that begins now, and its audit entry.
func (s *Store) SaveSilence(ctx context.Context, silence alert.Silence, act sluice.Act) (alert.Silence, error) {
	return save(ctx, s, "save silence", saving.Silences, silence, act, home[alert.Silence]{
		stored: func(tx runner) ([]alert.Silence, error) { return list(tx, scanSilence, alertSilenceSQL, silence.ID[:]) },
		store: func(tx runner, next alert.Silence) error {
			_, err := tx.exec(alertSilenceSaveSQL, next.ID[:], next.Rule, next.Queue, micros(next.CreatedAt), micros(next.Until), next.By, next.Reason)
			return err
		},
	})
}

func tellSilence(tx runner, silence alert.Silence, event sluice.Event, act sluice.Act) error {
	after, err := json.Marshal(silence)
	if err != nil {
		return err
	}
	return tell(tx, sluice.AuditEntry{
		Object: audit.ObjectAlert, Name: silence.Name(), Event: event, Actor: act.By, Reason: act.Reason, ActID: act.ID, After: after,
	})
}

// EndSilence ends a silence before its time, and audits this.
func (s *Store) EndSilence(ctx context.Context, id sluice.ID, act sluice.Act) error {
	act = saving.Named(act)
	return s.write(ctx, "end silence", func(tx runner, _ bool) error {
		at := now()
		stored, err := list(tx, scanSilence, alertSilenceSQL, id[:])
		if err != nil {
			return err
		}
		if len(stored) == 0 || !timeOf(&at).Before(stored[0].Until) {
			before, err := list(tx, scanOne[bool], alertSilenceEndedSQL, act.ID[:], id.String())
			if err == nil && !before[0] {
				err = sluice.ErrNotFound
			}
			return err
		}
		if _, err := tx.exec(alertSilenceEndSQL, id[:]); err != nil {
			return err
		}
		return tellSilence(tx, stored[0], audit.EventUnsilence, act)
	})
}
