package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/health"
)

// wrongBatches is how many batches with wrong counts doctor names.
const wrongBatches = 5

// examineBatches counts the jobs of every batch one by one, and compares. A store without batches gives no finding.
func examineBatches(ctx context.Context, store sluice.Store) ([]finding, error) {
	looked, wrong := 0, []string(nil)
	for filter := (batch.Filter{Limit: 1000}); ; {
		page, err := batch.List(ctx, store, filter)
		if errors.Is(err, sluice.ErrNotFound) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		for _, b := range page {
			counted, err := batch.Given(store).RecountBatch(ctx, b.ID)
			if errors.Is(err, sluice.ErrNotFound) && !errors.Is(err, errors.ErrUnsupported) {
				continue // upkeep has forgotten it since
			}
			if err != nil {
				return nil, err
			}
			if looked++; !counted.Exact() {
				wrong = append(wrong, fmt.Sprintf("%s counts %s, and has %s", b.ID, draw.Plural(counted.Batch.Unfinished(), "unfinished job"), draw.Count(counted.Unfinished)))
			}
		}
		if len(page) < filter.Limit {
			break
		}
		filter.Before = page[len(page)-1].ID
	}
	if len(wrong) == 0 {
		return []finding{well("batches", "%s looked at, whose counts fit their jobs", draw.Plural(looked, "batch"))}, nil
	}
	return []finding{{
		Check: "batches", Severity: health.SeverityError,
		What:   fmt.Sprintf("wrong counts in %s of %s: %s", draw.Count(len(wrong)), draw.Plural(looked, "batch"), strings.Join(wrong[:min(len(wrong), wrongBatches)], "; ")),
		Why:    "such a batch may complete too early, or never",
		Repair: "look in `sluice audit` for jobs whose rows somebody has deleted; a new batch counts anew; if nobody changed the tables, tell us",
	}}, nil
}
