package giventest_test

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/cmd/signin"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/search"
)

// init adds the calls of the packages behind the HTTP API.
func init() {
	maps.Copy(calls, map[string]func(context.Context) error{
		"access.Create":  func(ctx context.Context) error { _, _, err := access.Create(ctx, nil, access.Token{}, act); return err },
		"access.Rotate":  func(ctx context.Context) error { _, _, err := access.Rotate(ctx, nil, "t", 0, act); return err },
		"access.Revoke":  func(ctx context.Context) error { return access.Revoke(ctx, nil, "t", act) },
		"access.Tokens":  func(ctx context.Context) error { _, err := access.Tokens(ctx, nil, "", 1); return err },
		"access.Given":   func(ctx context.Context) error { _, err := access.Given(nil).AccessToken(ctx, "t"); return err },
		"access.NewGate": func(ctx context.Context) error { _, err := access.NewGate(nil).Caller(ctx, "sluice_x"); return err },
		"api.ServeWith": func(ctx context.Context) error {
			return api.ServeWith(ctx, nil, http.NotFoundHandler(), api.ServeOptions{})
		},
		"explain.Within": func(ctx context.Context) error {
			_, err := explain.Within(ctx, nil, sluice.NewID(), access.Bounds{})
			return err
		},
		"changes.UndoTo": func(ctx context.Context) error { _, err := changes.UndoTo(ctx, nil, "x", 1, act); return err },
		"health.Maintain": func(ctx context.Context) error {
			_, err := health.Maintain(ctx, nil, health.TaskVacuum, false, act)
			return err
		},
		"audit.Search": func(ctx context.Context) error { _, err := audit.Search(ctx, nil, audit.Filter{}); return err },
		"search.ReadList": func(ctx context.Context) error {
			_, err := search.ReadList(ctx, nil, search.Query{}, "", 1)
			return err
		},
	})
	harmless["signin.New"] = func() {
		h := signin.New(nil, signin.Options{})
		r := httptest.NewRequest("GET", "/login", nil)
		h.ServeHTTP(httptest.NewRecorder(), r)
		r.Header.Set("Authorization", "Bearer sluice_x")
		_, _ = h.Identify(r)
	}
	harmless["httpapi.New"] = func() { httpapi.New(nil, httpapi.Options{}) }
}
