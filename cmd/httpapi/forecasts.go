package httpapi

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/forecast"
)

// forecasts adds the routes of forecasts.
func (a *API) forecasts() {
	const text = "With rate, batch, concurrency or run_time it assumes other limits than the present ones, and changes nothing."
	add(a, Route{
		Method: "GET", Path: "/forecast", Name: "list-forecasts", Group: "look", Summary: "forecast the work of all queues",
		Text: text, Needs: access.Look, Commands: []string{"forecast"}, scope: ofJobs, noun: "queue",
	}, func(ctx context.Context, c *call, in *ForecastInput) (forecast.Forecast, error) {
		if len(c.caller.Tenants) > 0 {
			return forecast.Forecast{}, outOfBounds("the token is bounded to some tenants")
		}
		out, err := c.forecast(ctx, "", in)
		out.Queues = slices.DeleteFunc(out.Queues, func(q forecast.Queue) bool { return !c.caller.Queue(q.Queue) })
		return out, err
	})
	add(a, Route{
		Method: "GET", Path: "/queues/{queue}/forecast", Name: "get-forecast", Group: "look", Summary: "forecast the work of a queue",
		Text: text, Needs: access.Look, Commands: []string{"forecast"}, scope: ofQueue, noun: "queue",
	}, func(ctx context.Context, c *call, in *queueForecastInput) (forecast.Forecast, error) {
		return c.forecast(ctx, in.Queue, &in.ForecastInput)
	})
}

// ForecastInput chooses a forecast.
type ForecastInput struct {
	Ahead       string `query:"ahead" doc:"how far to look, such as 2h, up to 7d" default:"2h" maxLength:"20"`
	Bucket      string `query:"bucket" doc:"the length of a bucket: 1m, 5m or 1h; default: for some 24 buckets" maxLength:"20"`
	Tenants     bool   `query:"tenants" doc:"with the figures of tenants"`
	Rate        string `query:"rate" doc:"assume this rate, such as 200/s" maxLength:"40"`
	Batch       string `query:"batch" doc:"assume batches, such as 500/5s, instead of the rate" maxLength:"40"`
	Concurrency int    `query:"concurrency" doc:"assume this concurrency, whatever the setting and the slots of workers" minimum:"0" maximum:"1000000"`
	RunTime     string `query:"run_time" doc:"assume that a job runs this long, such as 2s; default: the recent mean" maxLength:"20"`
}

// queueForecastInput chooses a forecast of a queue.
type queueForecastInput struct {
	ForecastInput
	Queue string `path:"queue" doc:"the queue" maxLength:"64"`
}

// forecast forecasts the work of a queue, or of all.
func (c *call) forecast(ctx context.Context, queue string, in *ForecastInput) (forecast.Forecast, error) {
	request := forecast.Request{Queue: queue, Tenants: in.Tenants, WhatIf: forecast.WhatIf{Concurrency: in.Concurrency}}
	var err error
	if request.Ahead, err = optional("ahead", in.Ahead); err == nil {
		request.Bucket, err = optional("bucket", in.Bucket)
	}
	if err == nil {
		request.WhatIf.RunTime, err = optional("run_time", in.RunTime)
	}
	if err == nil && in.Rate != "" {
		if request.WhatIf.Rate, err = sluice.ParseRate(in.Rate); err != nil {
			err = &sluice.InvalidError{Field: "rate", Rule: "must be a rate such as 200/s"}
		}
	}
	if err == nil && in.Batch != "" {
		err = batchOf(in.Batch, &request.WhatIf)
	}
	if err != nil {
		return forecast.Forecast{Queues: []forecast.Queue{}}, err
	}
	return forecast.Of(ctx, c.api.store, request)
}

// batchOf reads jobs per interval, such as 500/5s.
func batchOf(text string, into *forecast.WhatIf) error {
	jobs, interval, found := strings.Cut(text, "/")
	if interval != "" && (interval[0] < '0' || interval[0] > '9') {
		interval = "1" + interval // a unit alone
	}
	number, err := strconv.Atoi(jobs)
	while, otherErr := positive("batch", interval)
	if !found || err != nil || otherErr != nil || number < 1 {
		return &sluice.InvalidError{Field: "batch", Rule: "must be jobs per interval, such as 500/5s"}
	}
	into.Batch, into.Every = number, while
	return nil
}
