package safe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
)

func (s store) Limits(ctx context.Context, names []string) (_ []limit.Limit, err error) {
	defer s.caught(&err)
	return s.limits.Limits(ctx, names)
}

func (s store) LimitUses(ctx context.Context, names []string) (_ []limit.Use, err error) {
	defer s.caught(&err)
	return s.limits.LimitUses(ctx, names)
}

func (s store) SaveLimit(ctx context.Context, one limit.Limit, act sluice.Act) (_ limit.Limit, err error) {
	defer s.caught(&err)
	return s.limits.SaveLimit(ctx, one, act)
}

func (s store) DeleteLimit(ctx context.Context, name string, act sluice.Act) (err error) {
	defer s.caught(&err)
	return s.limits.DeleteLimit(ctx, name, act)
}

func (s store) KeyUses(ctx context.Context, name string, keys []string, most int) (_ []limit.KeyUse, err error) {
	defer s.caught(&err)
	return s.limits.KeyUses(ctx, name, keys, most)
}

func (s store) CloseKey(ctx context.Context, name, key string, until time.Time, act sluice.Act) (err error) {
	defer s.caught(&err)
	return s.limits.CloseKey(ctx, name, key, until, act)
}
