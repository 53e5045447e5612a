package export

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/sluice-queue/sluice/alert"
)

// units are Grafana's names for the units of metrics.
var units = map[string]string{
	"jobs": "short", "seconds": "s", "bytes": "bytes", "rows": "short", "share": "percentunit", "per second": "ops",
}

type object = map[string]any

const (
	// across is the number of charts in a row, wide the width of a chart in Grafana's 24 columns,
	// and high its height in rows.
	across = 3
	wide   = 24 / across
	high   = 8
)

// GrafanaDashboard writes a dashboard as JSON. Its rows are questions; its charts name the alert
// rules on the same metrics.
func GrafanaDashboard(rules []alert.Rule) ([]byte, error) {
	var panels []object
	y := 0
	add := func(p object, x, w, h int) {
		p["id"] = len(panels) + 1
		p["gridPos"] = object{"h": h, "w": w, "x": x, "y": y}
		panels = append(panels, p)
	}
	for _, q := range questions {
		add(object{"type": "row", "title": q.asks, "collapsed": false, "panels": []object{}}, 0, 24, 1)
		y++
		for i, c := range q.charts {
			if i > 0 && i%across == 0 {
				y += high
			}
			add(c.panel(rules), i%across*wide, wide, high)
		}
		y += high
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

// panel is the chart for Grafana, with a rule's threshold if the chart shows the rule's metric.
func (c chart) panel(rules []alert.Rule) object {
	var targets []object
	for i, l := range c.lines {
		targets = append(targets, object{
			"refId": string(rune('A' + i)), "expr": l.expr, "legendFormat": l.legend, "datasource": source(),
		})
	}
	judges := c.judges(rules)
	custom := object{"fillOpacity": 8, "showPoints": "never", "spanNulls": false}
	defaults := object{"unit": c.unit, "min": 0, "custom": custom}
	if r := c.bound(judges); r != nil {
		below, above := "green", "red"
		if r.Op == "<" {
			below, above = above, below
		}
		defaults["thresholds"] = object{"mode": "absolute", "steps": []object{{"color": below, "value": nil}, {"color": above, "value": r.Threshold}}}
		custom["thresholdsStyle"] = object{"mode": "line"}
	}
	return object{
		"type": "timeseries", "title": c.title, "description": describe(judges), "datasource": source(), "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}},
		"options":     object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}}, "tooltip": object{"mode": "multi", "sort": "desc"}},
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

// Expressions lists every expression of the rule file and of the dashboard.
func Expressions(rules []alert.Rule) ([]string, error) {
	var all []string
	for _, r := range rules {
		condition, err := Condition(r, []string{"other"})
		if err != nil {
			return nil, err
		}
		all = append(all, condition, Value(r.Metric, time.Minute))
	}
	for _, q := range questions {
		for _, c := range q.charts {
			for _, l := range c.lines {
				all = append(all, l.expr)
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}
