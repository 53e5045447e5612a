package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

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

//go:embed sql/alerts_save.sql
var alertsSaveSQL string

//go:embed sql/alert_forget.sql
var alertForgetSQL string

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
	err = s.call(ctx, "read alerts", func(ctx context.Context, _ bool) (err error) {
		book = alert.Book{}
		if book.Rules, err = list(ctx, s.pool, scanAlertRule, alertRulesSQL); err != nil {
			return err
		}
		if book.Alerts, err = list(ctx, s.pool, scanAlert, alertsSQL); err != nil {
			return err
		}
		if book.Silences, err = list(ctx, s.pool, scanSilence, alertSilencesSQL); err != nil {
			return err
		}
		return s.readReceivers(ctx, &book)
	})
	return book, err
}

func (s *Store) readReceivers(ctx context.Context, book *alert.Book) error {
	_, err := list(ctx, s.pool, func(row pgx.CollectableRow) (struct{}, error) {
		var r alert.ReceiverStatus
		var name, queue *string
		var seen, oldest pgtype.Timestamptz
		err := row.Scan(&book.Now, &name, &queue, &seen, &r.Waiting, &oldest, &r.Error)
		if name != nil {
			r.Name, r.Queue, r.Seen, r.Oldest = *name, *queue, timeOf(seen), timeOf(oldest)
			book.Receivers = append(book.Receivers, r)
		}
		book.Now = book.Now.UTC()
		return struct{}{}, err
	}, alertReceiversSQL, sluice.DepthLimit)
	return err
}

func scanAlertRule(row pgx.CollectableRow) (alert.Rule, error) {
	var r alert.Rule
	var holds, window int64
	err := row.Scan(&r.Name, &r.Queue, &r.Metric, &r.Op, &r.Threshold, &r.RateShare, &holds, &window, &r.Severity, &r.Covers, &r.Summary, &r.Runbook,
		&r.Disabled, &r.Version, &r.ChangedAt, &r.ChangedBy, &r.Reason)
	r.For, r.Window, r.ChangedAt = time.Duration(holds)*time.Millisecond, time.Duration(window)*time.Millisecond, r.ChangedAt.UTC()
	return r, err
}

func scanAlert(row pgx.CollectableRow) (alert.Alert, error) {
	var a alert.Alert
	var pending, fired, resolved, at pgtype.Timestamptz
	err := row.Scan(&a.Rule, &a.Queue, &a.State, &a.Since, &pending, &fired, &resolved, &a.Told, &a.Value, &a.Threshold, &a.Severity, &at, &a.Detail,
		&a.Version)
	a.Since, a.PendingSince, a.FiredAt, a.ResolvedAt, a.At = a.Since.UTC(), timeOf(pending), timeOf(fired), timeOf(resolved), timeOf(at)
	return a, err
}

func scanSilence(row pgx.CollectableRow) (alert.Silence, error) {
	var out alert.Silence
	var id pgtype.UUID
	err := row.Scan(&id, &out.Rule, &out.Queue, &out.CreatedAt, &out.Until, &out.By, &out.Reason)
	out.ID, out.CreatedAt, out.Until = idOf(id), out.CreatedAt.UTC(), out.Until.UTC()
	return out, err
}

// SaveAlertRule stores a rule and its audit entry.
func (s *Store) SaveAlertRule(ctx context.Context, rule alert.Rule, act sluice.Act) (alert.Rule, error) {
	return save(ctx, s, "save rule", saving.Rules, rule, act, home[alert.Rule]{
		stored: func(ctx context.Context, db rowsQuerier) ([]alert.Rule, error) {
			return list(ctx, db, scanAlertRule, alertRuleSQL, rule.Name, rule.Queue)
		},
		store: func(ctx context.Context, tx pgx.Tx, _ *alert.Rule) (time.Time, error) {
			return savedRow(ctx, tx, alertRuleSaveSQL, rule.Name, rule.Queue, rule.Metric, rule.Op, rule.Threshold, rule.RateShare,
				rule.For.Milliseconds(), rule.Window.Milliseconds(), string(rule.Severity), string(rule.Covers), rule.Summary, rule.Runbook,
				rule.Disabled, rule.Version, act.By, act.Reason)
		},
	})
}

// DeleteAlertRule deletes a stored rule and audits this. A preset of the same name counts again.
func (s *Store) DeleteAlertRule(ctx context.Context, name, queue string, act sluice.Act) error {
	return s.strike(ctx, "delete rule", audit.ObjectAlert, alert.RuleName(name, queue), act, alertRuleDeleteSQL, name, queue, alert.RuleName(name, queue), act.By, act.Reason, nullUUID(act.ID))
}

// storedAlert is an alert as the statement takes it.
type storedAlert struct {
	alert.Alert
	Version int64 `json:"version"` // the new version
}

// SaveAlerts stores one evaluation: alert states, audit entries, and a job per message and receiver.
func (s *Store) SaveAlerts(ctx context.Context, round alert.Evaluation) error {
	rows := make([]storedAlert, len(round.Alerts))
	for i, a := range round.Alerts {
		rows[i] = storedAlert{a, a.Version + 1}
	}
	slices.SortFunc(rows, func(a, b storedAlert) int { return compareAlerts(a.Alert, b.Alert) })
	text, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	jobs, err := s.notifications(ctx, round)
	if err != nil {
		return err
	}
	if err := s.noteAwaited(ctx, jobs); err != nil {
		return err
	}
	var out enqueued
	err = s.call(ctx, "save alerts", func(ctx context.Context, again bool) error {
		if again {
			stored, err := list(ctx, s.pool, scanAlert, alertsSQL)
			if err != nil || alertsStored(stored, rows) {
				return err
			}
		}
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			saved, err := list(ctx, tx, pgx.RowTo[string], alertsSaveSQL, string(text))
			if err == nil && len(saved) < len(rows) {
				err = sluice.ErrConflict
			}
			if err != nil {
				return err
			}
			if err := exec(ctx, tx, alertForgetSQL, alert.ReceiverKept); err != nil {
				return err
			}
			if err := noteEntries(ctx, tx, round.Entries); err != nil {
				return err
			}
			out, err = enqueueNotifications(ctx, tx, jobs, again)
			return err
		})
	})
	if err != nil {
		return err
	}
	s.tellEnqueued(jobs, out.receipts)
	s.unblock(ctx, out.behind)
	return nil
}

// alertsStored reports whether an earlier try has stored the alerts.
func alertsStored(stored []alert.Alert, rows []storedAlert) bool {
	for _, row := range rows {
		if !slices.ContainsFunc(stored, func(a alert.Alert) bool {
			return a.Rule == row.Rule && a.Queue == row.Queue && a.Version == row.Version && a.State == row.State &&
				a.At.Equal(row.At.Truncate(time.Microsecond))
		}) {
			return false
		}
	}
	return len(rows) > 0
}
