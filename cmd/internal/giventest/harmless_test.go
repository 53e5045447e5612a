package giventest_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/scrub"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/step"
)

// harmless are functions that accept nil and return no error: they do nothing, or use a default.
var harmless = map[string]func(){
	"sluice.Outage":         func() { sluice.Outage(nil, errors.New("x")) },
	"health.MetricsOf":      func() { health.MetricsOf(nil) },
	"stat.CountStartFailed": func() { stat.CountStartFailed(nil, "payments", "") },
	"sluice.StoreAs":        func() { sluice.StoreAs[health.Store](nil) },
	"step.Begin":            func() { _, end := step.Begin(context.Background(), nil, step.Step{}); end(step.End{}) },
	"api.SchemaIsUpToDate":  func() { api.SchemaIsUpToDate(nil) },
	"api.NewReadiness":      func() { api.NewReadiness(api.Check{Name: "x"}).Report() },
	"api.Handle": func() {
		site, _ := api.New(api.Options{Base: "/base"})
		site.Handle("/x", nil)
		site.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/base/x", http.NoBody))
	},
	"scrub.NewHandler": func() { scrub.NewHandler(nil, nil).Enabled(context.Background(), 0) },
}
