package dispatcher

import (
	"context"
	"fmt"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
)

// adopt checks whether a run with the job's ref belongs to this job after all. This is so if the store has lost
// the job that started the run. nil: the run is the job's own. Otherwise adopt returns the engine's answer, or
// the error of the check.
func (d *Dispatcher) adopt(work context.Context, q sluice.Queue, target engine.Target, name string, h *hold, taken error) error {
	runs, err := d.options.Engines[name].Outcomes(work, target, []string{h.run.Ref})
	if err != nil {
		return fmt.Errorf("look whose run %.200q is: %w", h.run.Ref, err)
	}
	own, err := engine.Adopts(work, d.store, h.claim.Job, q.Settings, runs[0], d.settings.Now())
	switch {
	case err != nil:
		return err
	case !own:
		return taken
	}
	h.adopted = fmt.Sprintf("adopted: the run was begun for job %s, of the same key and payload, which the store has lost", runs[0].Job)
	d.log.EmitJob(event.RunAdopted, h.claim, "ref", h.run.Ref, "begun_for", runs[0].Job)
	return nil
}
