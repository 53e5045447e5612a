package sluice_test

import (
	"errors"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

func TestRefNamesARunByItsJobLifeAndAttempt(t *testing.T) {
	t.Parallel()
	id := sluice.NewID()
	job := func(change func(*sluice.Job)) sluice.Job {
		j := sluice.Job{ID: id, Queue: "payment", Key: "order-7", Tenant: "acme", Generation: 1}
		change(&j)
		return j
	}
	as := func(template string) sluice.Settings {
		return sluice.Settings{RunRef: template, RunType: "PaymentExec"}
	}
	digits, err := sluice.ParseID("01a1fdb5-bfe6-75e7-bcd2-a27281025319")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		job  sluice.Job
		s    sluice.Settings
		want string
	}{
		"the first run":                     {job(func(*sluice.Job) {}), as(""), "payment-" + id.String()},
		"of a template":                     {job(func(*sluice.Job) {}), as("exec-{type}-{key}"), "exec-PaymentExec-order-7"},
		"with the tenant":                   {job(func(*sluice.Job) {}), as("{tenant}/{queue}/{id}"), "acme/payment/" + id.String()},
		"of a job without a key":            {job(func(j *sluice.Job) { j.Key = "" }), as("{key}"), id.String()},
		"of the second attempt":             {job(func(j *sluice.Job) { j.Attempts = 1 }), as("{key}"), "order-7-a2"},
		"of the third life":                 {job(func(j *sluice.Job) { j.Generation = 3 }), as("{key}"), "order-7-g3"},
		"of another attempt in it":          {job(func(j *sluice.Job) { j.Generation, j.Attempts = 3, 1 }), as("{key}"), "order-7-g3-a2"},
		"of a key that looks like one":      {job(func(j *sluice.Job) { j.Key = "order-7-a2" }), as("{key}"), "order-7-a2-g1"},
		"and of one that looks like that":   {job(func(j *sluice.Job) { j.Key = "order-7-a2-g1" }), as("{key}"), "order-7-a2-g1-g1"},
		"what a key holds is not a field":   {job(func(j *sluice.Job) { j.Key = "{id}" }), as("{key}"), "{id}"},
		"of an id that ends in digits":      {job(func(j *sluice.Job) { j.ID = digits }), as(""), "payment-" + digits.String()},
		"of a queue without a type, as its": {job(func(*sluice.Job) {}), sluice.Settings{RunRef: "{type}-{key}"}, "payment-order-7"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := engine.RefOf(c.job, c.s); got != c.want {
				t.Errorf("the run is called %s, want %s", got, c.want)
			}
		})
	}
}

func TestTemplateOfRefsMustTellJobsApart(t *testing.T) {
	t.Parallel()
	for template, fits := range map[string]bool{
		"": true, "{queue}-{id}": true, "exec-{type}-{key}": true, "exec": false, "{tenant}": false, "{job}-{id}": false, "{id}}": false,
	} {
		settings := sluice.DefaultSettings()
		settings.RunRef = template
		if err := settings.Check(); fits != (err == nil) || !fits && !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%q: %v", template, err)
		}
	}
}
