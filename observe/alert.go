package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

func (s *store) Glance(ctx context.Context, queue string, limit int) (sluice.Depth, error) {
	return do(ctx, s, "glance", queue, func(ctx context.Context) (sluice.Depth, error) { return s.Store.Glance(ctx, queue, limit) })
}

func (s *store) AlertBook(ctx context.Context) (sluice.AlertBook, error) {
	return do(ctx, s, "alert_book", "", s.Store.AlertBook)
}

func (s *store) SaveAlertRule(ctx context.Context, rule sluice.AlertRule, act sluice.Act) (sluice.AlertRule, error) {
	return do(ctx, s, "save_alert_rule", rule.Queue, func(ctx context.Context) (sluice.AlertRule, error) {
		return s.Store.SaveAlertRule(ctx, rule, act)
	})
}

func (s *store) DeleteAlertRule(ctx context.Context, name, queue string, act sluice.Act) error {
	_, err := do(ctx, s, "delete_alert_rule", queue, func(ctx context.Context) (none, error) {
		return none{}, s.Store.DeleteAlertRule(ctx, name, queue, act)
	})
	return err
}

func (s *store) SaveAlerts(ctx context.Context, round sluice.AlertRound) error {
	_, err := do(ctx, s, "save_alerts", "", func(ctx context.Context) (none, error) { return none{}, s.Store.SaveAlerts(ctx, round) })
	return err
}

func (s *store) SaveSilence(ctx context.Context, silence sluice.Silence, act sluice.Act) (sluice.Silence, error) {
	return do(ctx, s, "save_silence", silence.Queue, func(ctx context.Context) (sluice.Silence, error) {
		return s.Store.SaveSilence(ctx, silence, act)
	})
}

func (s *store) EndSilence(ctx context.Context, id sluice.ID, act sluice.Act) error {
	_, err := do(ctx, s, "end_silence", "", func(ctx context.Context) (none, error) { return none{}, s.Store.EndSilence(ctx, id, act) })
	return err
}

func (s *store) TakeNotices(ctx context.Context, receiver string, limit int, hold time.Duration) ([]sluice.AlertNotice, error) {
	return do(ctx, s, "take_notices", "", func(ctx context.Context) ([]sluice.AlertNotice, error) {
		return s.Store.TakeNotices(ctx, receiver, limit, hold)
	})
}

func (s *store) SettleNotices(ctx context.Context, results []sluice.NoticeResult) error {
	_, err := do(ctx, s, "settle_notices", "", func(ctx context.Context) (none, error) { return none{}, s.Store.SettleNotices(ctx, results) })
	return err
}
