package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
)

func (s *store) Limits(ctx context.Context, names []string) ([]limit.Limit, error) {
	return do(ctx, s, "limits", "", func(ctx context.Context) ([]limit.Limit, error) { return s.limits.Limits(ctx, names) })
}

func (s *store) LimitUses(ctx context.Context, names []string) ([]limit.Use, error) {
	return do(ctx, s, "limit_uses", "", func(ctx context.Context) ([]limit.Use, error) { return s.limits.LimitUses(ctx, names) })
}

func (s *store) SaveLimit(ctx context.Context, one limit.Limit, act sluice.Act) (limit.Limit, error) {
	return do(ctx, s, "save_limit", "", func(ctx context.Context) (limit.Limit, error) { return s.limits.SaveLimit(ctx, one, act) })
}

func (s *store) DeleteLimit(ctx context.Context, name string, act sluice.Act) error {
	_, err := do(ctx, s, "delete_limit", "", func(ctx context.Context) (none, error) {
		return none{}, s.limits.DeleteLimit(ctx, name, act)
	})
	return err
}

func (s *store) KeyUses(ctx context.Context, name string, keys []string, most int) ([]limit.KeyUse, error) {
	return do(ctx, s, "key_uses", "", func(ctx context.Context) ([]limit.KeyUse, error) { return s.limits.KeyUses(ctx, name, keys, most) })
}

func (s *store) CloseKey(ctx context.Context, name, key string, until time.Time, act sluice.Act) error {
	_, err := do(ctx, s, "close_key", "", func(ctx context.Context) (none, error) {
		return none{}, s.limits.CloseKey(ctx, name, key, until, act)
	})
	return err
}
