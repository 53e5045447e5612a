package remote

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/limit"
)

// limitPath is the path of a limit.
func limitPath(name, rest string) string { return "/limits/" + url.PathEscape(name) + rest }

// Limits lists limits by name.
func (s *Store) Limits(ctx context.Context, names []string) (all []limit.Limit, err error) {
	uses, err := s.LimitUses(ctx, names)
	for _, use := range uses {
		all = append(all, use.Limit)
	}
	return all, err
}

// LimitUses lists limits with how much of each is in use.
func (s *Store) LimitUses(ctx context.Context, names []string) (all []limit.Use, err error) {
	var answer wire.LimitList
	if err := s.call(ctx, request{verb: "list limits", path: "/limits", out: &answer}); err != nil {
		return nil, err
	}
	for _, view := range answer.Limits {
		if names == nil || slices.Contains(names, view.Name) {
			all = append(all, view.Use())
		}
	}
	return all, nil
}

// SaveLimit stores a limit.
func (s *Store) SaveLimit(ctx context.Context, l limit.Limit, act sluice.Act) (limit.Limit, error) {
	var view wire.LimitView
	body := wire.SaveLimitBody{Limit: l, Version: l.Version, Reason: act.Reason}
	err := s.call(ctx, saving("save a limit", limitPath(l.Name, ""), &act, body, &view))
	return view.Use().Limit, err
}

// DeleteLimit deletes a limit.
func (s *Store) DeleteLimit(ctx context.Context, name string, act sluice.Act) error {
	return s.call(ctx, deleting("delete a limit", limitPath(name, ""), &act))
}

// maxLimitKeys is the most limit keys in the address of a request.
const maxLimitKeys = 100

// KeyUses says how much of a limit each key uses.
func (s *Store) KeyUses(ctx context.Context, name string, keys []string, most int) (all []limit.KeyUse, err error) {
	if keys == nil {
		all, err = s.keyUses(ctx, name, nil)
		return all[:min(len(all), most)], err
	}
	for some := range slices.Chunk(keys, maxLimitKeys) {
		found, err := s.keyUses(ctx, name, some)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func (s *Store) keyUses(ctx context.Context, name string, keys []string) (all []limit.KeyUse, err error) {
	q := params{}
	for _, key := range keys {
		q.text("key", key)
	}
	var view wire.LimitView
	err = s.call(ctx, request{verb: "read the use of limit keys", path: limitPath(name, ""), query: q.values(), out: &view})
	if errors.Is(err, sluice.ErrNotFound) {
		return nil, nil
	}
	for _, key := range view.Keys {
		all = append(all, key.Use())
	}
	return all, err
}

// CloseKey closes a key of a limit until an instant, or opens it.
func (s *Store) CloseKey(ctx context.Context, name, key string, until time.Time, act sluice.Act) error {
	body := wire.SaveLimitKeyBody{Key: key, ClosedUntil: until, ReasonBody: why(act)}
	return s.call(ctx, saving("close a limit key", limitPath(name, "/key"), &act, body, nil))
}
