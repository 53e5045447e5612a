package export

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// chart is a panel that shows how things are, beside those of rules.
type chart struct {
	title string
	unit  string
	exprs []target
}

// target is a line of a chart.
type target struct{ expr, legend string }

// overview are the charts that come first.
var overview = []chart{
	{"Jobs by state", "short", []target{{`sum by (state) (max by (queue, state) (sluice_jobs{queue=~"$queue"}))`, "{{state}}"}}},
	{"Jobs that end", "ops", []target{
		{`sum by (queue) (rate(sluice_moves_total{queue=~"$queue",event="complete"}[$__rate_interval]))`, "{{queue}} completed"},
		{`sum by (queue) (rate(sluice_moves_total{queue=~"$queue",event="bury"}[$__rate_interval]))`, "{{queue}} dead"},
	}},
	{"Claims against the rate", "ops", []target{
		{`sum by (queue) (rate(sluice_moves_total{queue=~"$queue",event="claim"}[$__rate_interval]))`, "{{queue}} claimed"},
		{`max by (queue) (sluice_rate_limit{queue=~"$queue"})`, "{{queue}} rate"},
	}},
	{"In flight against the limit", "short", []target{
		{`max by (queue) (sluice_in_flight{queue=~"$queue"})`, "{{queue}}"},
		{`max by (queue) (sluice_in_flight_limit{queue=~"$queue"})`, "{{queue}} limit"},
	}},
	{"Wait from due to claim", "s", []target{
		{`histogram_quantile(0.5, sum by (le) (rate(sluice_wait_seconds_bucket{queue=~"$queue"}[$__rate_interval])))`, "p50"},
		{`histogram_quantile(0.95, sum by (le) (rate(sluice_wait_seconds_bucket{queue=~"$queue"}[$__rate_interval])))`, "p95"},
		{`histogram_quantile(0.99, sum by (le) (rate(sluice_wait_seconds_bucket{queue=~"$queue"}[$__rate_interval])))`, "p99"},
	}},
	{"From due to end", "s", []target{
		{`histogram_quantile(0.5, sum by (le) (rate(sluice_total_seconds_bucket{queue=~"$queue"}[$__rate_interval])))`, "p50"},
		{`histogram_quantile(0.95, sum by (le) (rate(sluice_total_seconds_bucket{queue=~"$queue"}[$__rate_interval])))`, "p95"},
		{`histogram_quantile(0.99, sum by (le) (rate(sluice_total_seconds_bucket{queue=~"$queue"}[$__rate_interval])))`, "p99"},
	}},
	{"Who works", "short", []target{{`max by (role) (sluice_holders)`, "{{role}}"}}},
	{"Calls of the store, p95", "s", []target{{`histogram_quantile(0.95, sum by (call, le) (rate(sluice_store_call_seconds_bucket[$__rate_interval])))`, "{{call}}"}}},
}

// units are Grafana's names for those of metrics.
var units = map[string]string{
	"jobs": "short", "seconds": "s", "bytes": "bytes", "rows": "short", "holders": "short", "queues": "short", "share": "percentunit", "per second": "ops",
}

type object = map[string]any

// GrafanaDashboard writes a dashboard as JSON: how things are, and for each rule that counts its figure with the threshold.
func GrafanaDashboard(rules []sluice.AlertRule) ([]byte, error) {
	panels := []object{row("Work", 0)}
	y := 1
	add := func(p object, place int) {
		p["id"] = len(panels) + 1
		p["gridPos"] = object{"h": 8, "w": 8, "x": place % 3 * 8, "y": y + place/3*8}
		panels = append(panels, p)
	}
	for i, c := range overview {
		add(timeseries(c.title, "", c.unit, c.exprs, nil), i)
	}
	y += (len(overview) + 2) / 3 * 8
	head := row("Alerts", y)
	head["id"] = len(panels) + 1
	panels = append(panels, head)
	y++
	place := 0
	for _, r := range rules {
		metric, err := sluice.AlertMetricNamed(r.Metric)
		if err != nil || r.Disabled || r.Queue != "" {
			continue
		}
		add(ruleChart(r, metric), place)
		place++
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(object{
		"uid": "sluice", "title": "Sluice", "tags": []string{"sluice"}, "schemaVersion": 39, "version": 1, "editable": true, "refresh": "30s",
		"time": object{"from": "now-3h", "to": "now"}, "timezone": "browser", "panels": panels, "templating": object{"list": variables()},
	})
	return text.Bytes(), err
}

func row(title string, y int) object {
	return object{"type": "row", "title": title, "id": 1, "collapsed": false, "panels": []object{}, "gridPos": object{"h": 1, "w": 24, "x": 0, "y": y}}
}

func ruleChart(r sluice.AlertRule, metric sluice.AlertMetric) object {
	legend := r.Metric
	if metric.OfQueue {
		legend = "{{queue}}"
	}
	expr := Value(r.Metric, r.Window)
	if r.Metric == sluice.MetricUpkeepMissing {
		expr = `max(sluice_holders{role="upkeep"})` // the figure of the rule is no picture
		legend, metric.Unit = "upkeepers", "holders"
		r.Threshold, r.Op = 1, "<"
	}
	return timeseries(AlertName(r.Name)[len("Sluice"):], r.Says+"\n\n"+r.Runbook, units[metric.Unit], []target{{expr, legend}}, &r)
}

// timeseries is a chart. With a rule it shows the threshold.
func timeseries(title, description, unit string, exprs []target, r *sluice.AlertRule) object {
	var targets []object
	for i, t := range exprs {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "expr": t.expr, "legendFormat": t.legend, "datasource": source(),
		})
	}
	defaults := object{"unit": unit, "min": 0, "custom": object{"fillOpacity": 8, "showPoints": "never", "spanNulls": false}}
	if r != nil {
		bad, good := object{"color": "red", "value": r.Threshold}, object{"color": "green", "value": nil}
		steps := []object{good, bad}
		if r.Op == "<" {
			steps = []object{{"color": "red", "value": nil}, {"color": "green", "value": r.Threshold}}
		}
		defaults["thresholds"] = object{"mode": "absolute", "steps": steps}
		defaults["custom"].(object)["thresholdsStyle"] = object{"mode": "line"}
	}
	return object{
		"type": "timeseries", "title": title, "description": description, "datasource": source(), "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}},
		"options":     object{"legend": object{"displayMode": "list", "placement": "bottom"}, "tooltip": object{"mode": "multi"}},
	}
}

func source() object { return object{"type": "prometheus", "uid": "${datasource}"} }

func variables() []object {
	return []object{
		{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Data source", "current": object{}},
		{
			"name": "queue", "type": "query", "label": "Queue", "datasource": source(), "query": "label_values(sluice_jobs, queue)", "refresh": 2,
			"multi": true, "includeAll": true, "allValue": ".*", "current": object{"text": "All", "value": "$__all"},
		},
	}
}

// Expressions lists every expression of the rules' file and of the dashboard.
func Expressions(rules []sluice.AlertRule) ([]string, error) {
	var all []string
	for _, r := range rules {
		condition, err := Condition(r, []string{"other"})
		if err != nil {
			return nil, err
		}
		all = append(all, condition, Value(r.Metric, time.Minute))
	}
	for _, c := range overview {
		for _, t := range c.exprs {
			all = append(all, t.expr)
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
