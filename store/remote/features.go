package remote

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/progress"
)

// SaveProgress stores reports of claimed jobs.
func (s *Store) SaveProgress(ctx context.Context, reports []progress.Report) error {
	type report struct {
		heldJob
		Fraction float64 `json:"fraction"`
		Message  string  `json:"message,omitempty"`
	}
	for some := range slices.Chunk(reports, maxSettled) {
		body := make([]report, len(some))
		for i, r := range some {
			body[i] = report{heldJob{r.JobID, hexOf(r.Token)}, r.Fraction, shortened(r.Message, 900)}
		}
		err := s.call(ctx, request{verb: "report progress", method: http.MethodPost, path: "/work/progress", body: asJSON(map[string]any{"reports": body})})
		if err != nil {
			return err
		}
	}
	return nil
}

// Progress returns the reports of running jobs, with a request for each.
func (s *Store) Progress(ctx context.Context, ids []sluice.ID) (all []progress.Report, err error) {
	for _, id := range ids {
		var answer struct {
			Progress *progress.Report `json:"progress"`
		}
		err := s.call(ctx, request{verb: "read progress", path: jobPath(id, ""), out: &answer})
		switch {
		case errors.Is(err, sluice.ErrNotFound):
		case err != nil:
			return nil, err
		case answer.Progress != nil:
			all = append(all, *answer.Progress)
		}
	}
	return all, nil
}

// Await asks for signals of the ends of jobs.
func (s *Store) Await(ctx context.Context, ids []sluice.ID) error {
	_, err := s.ends(ctx, ids, true)
	return err
}

// Ended returns the ends of those jobs that have ended.
func (s *Store) Ended(ctx context.Context, ids []sluice.ID) ([]await.End, error) {
	return s.ends(ctx, ids, false)
}

func (s *Store) ends(ctx context.Context, ids []sluice.ID, signal bool) (all []await.End, err error) {
	for some := range slices.Chunk(ids, maxPage) {
		var answer struct {
			Ends []await.End `json:"ends"`
		}
		err := s.call(ctx, request{
			verb: "read ends of jobs", method: http.MethodPost, path: "/jobs/ends", out: &answer, body: asJSON(map[string]any{"ids": some, "signal": signal}),
		})
		if err != nil {
			return nil, err
		}
		all = append(all, answer.Ends...)
	}
	return all, nil
}

// beat is a heartbeat.
type beat struct {
	Worker     string               `json:"worker"`
	Queues     []string             `json:"queues,omitempty"`
	Slots      int                  `json:"slots,omitempty"`
	Busy       int                  `json:"busy,omitempty"`
	Version    string               `json:"version,omitempty"`
	Protocol   int                  `json:"protocol,omitempty"`
	StartedAt  time.Time            `json:"started_at,omitzero"`
	Mode       presence.Mode        `json:"mode,omitempty"`
	Conditions []presence.Condition `json:"conditions,omitempty"`
	Leaving    bool                 `json:"leaving,omitempty"`
}

// Heartbeat tells that a worker is alive. Only workers work over HTTP.
func (s *Store) Heartbeat(ctx context.Context, h presence.Holder) (presence.Instruction, error) {
	if h.Role != presence.RoleWorker {
		return presence.Instruction{}, s.theDatabase("The work of a process with the role " + h.Role)
	}
	var answer struct {
		Instruction presence.Instruction `json:"instruction"`
	}
	err := s.call(ctx, request{
		verb: "heartbeat", method: http.MethodPost, path: "/work/heartbeat", out: &answer,
		body: asJSON(beat{
			Worker: h.ID, Queues: h.Queues, Slots: h.Slots, Busy: h.Busy, Version: shortened(h.Version, 100), Protocol: h.Protocol, StartedAt: h.Started, Mode: h.Mode, Conditions: h.Conditions,
		}),
	})
	return answer.Instruction, err
}

// Deregister forgets a worker that ends.
func (s *Store) Deregister(ctx context.Context, holderID string) error {
	return s.call(ctx, request{verb: "deregister", method: http.MethodPost, path: "/work/heartbeat", body: asJSON(beat{Worker: holderID, Leaving: true})})
}

// holderList is what the API tells of processes.
type holderList struct {
	Holders      []presence.Holder      `json:"holders"`
	Instructions []presence.Instruction `json:"instructions"`
	Leaders      []presence.Leader      `json:"leaders"`
}

func (s *Store) holders(ctx context.Context) (out holderList, err error) {
	err = s.call(ctx, request{verb: "list processes", path: "/holders", query: params{"ended": {"true"}}.values(), out: &out})
	return out, err
}

// Holders lists the processes, with what they lead and were told.
func (s *Store) Holders(ctx context.Context) ([]presence.Holder, error) {
	out, err := s.holders(ctx)
	return out.Holders, err
}

// Leaders lists the leaders of tasks.
func (s *Store) Leaders(ctx context.Context) ([]presence.Leader, error) {
	out, err := s.holders(ctx)
	return out.Leaders, err
}

// Instructions lists what processes were told.
func (s *Store) Instructions(ctx context.Context) ([]presence.Instruction, error) {
	out, err := s.holders(ctx)
	return out.Instructions, err
}

// Elect is an [*UnsupportedError]: the server leads.
func (s *Store) Elect(context.Context, string, []string, time.Duration) ([]string, error) {
	return nil, s.theServer("To lead a task")
}

// SaveInstruction stores an instruction to processes.
func (s *Store) SaveInstruction(ctx context.Context, instruction presence.Instruction, act sluice.Act) (presence.Instruction, error) {
	var view wire.InstructionView
	body := wire.SaveInstructionBody{Instruction: instruction, Reason: act.Reason}
	err := s.call(ctx, saving("instruct processes", "/holders/instructions", &act, body, &view))
	return view.Read(), err
}

// HeldJobs lists the claimed jobs of processes.
func (s *Store) HeldJobs(ctx context.Context, holderIDs []string, limit int) ([]presence.HeldJob, error) {
	if len(holderIDs) == 0 {
		return nil, s.opened("list the jobs of processes")
	}
	var answer wire.HeldJobList
	err := s.call(ctx, request{
		verb: "list the jobs of processes", method: http.MethodPost, path: "/holders/jobs", out: &answer, body: asJSON(wire.HeldJobsBody{Holders: holderIDs, Limit: limit}),
	})
	return answer.Jobs, err
}

// QueuePolicy reads which new queues the store makes.
func (s *Store) QueuePolicy(ctx context.Context) (admission.Policy, error) {
	var view wire.AdmissionView
	err := s.call(ctx, request{verb: "read the policy of queues", path: "/admission", out: &view})
	return view.Read(), err
}

// SaveQueuePolicy stores which new queues the store makes.
func (s *Store) SaveQueuePolicy(ctx context.Context, policy admission.Policy, act sluice.Act) (admission.Policy, error) {
	var view wire.AdmissionView
	body := wire.SaveAdmissionBody{Version: policy.Version, MaxQueues: policy.MaxQueues, Declared: policy.Declared, Reason: act.Reason}
	err := s.call(ctx, saving("save the policy of queues", "/admission", &act, body, &view))
	return view.Read(), err
}

// PausedTenants returns those of some tenants that are paused in a queue; workers ask for it.
func (s *Store) PausedTenants(ctx context.Context, queue string, tenants []string) (paused []string, err error) {
	for some := range slices.Chunk(tenants, maxNames) {
		var answer struct {
			Paused []string `json:"paused"`
		}
		err := s.call(ctx, request{
			verb: "read which tenants are paused", method: http.MethodPost, path: "/work/paused", out: &answer, body: asJSON(map[string]any{"queue": queue, "tenants": some}),
		})
		if err != nil {
			return nil, err
		}
		paused = append(paused, answer.Paused...)
	}
	return paused, nil
}

// PauseShared closes what a rate-limited job shares with others; workers ask for it.
func (s *Store) PauseShared(ctx context.Context, claim *sluice.Claim, d time.Duration, act sluice.Act) error {
	return s.call(ctx, request{verb: "close what a job shares", method: http.MethodPost, path: "/work/pause", act: &act, body: asJSON(struct {
		Worker string `json:"worker"`
		heldJob
		For    string `json:"for"`
		Reason string `json:"reason,omitempty"`
	}{act.By, heldJob{claim.ID, hexOf(claim.Token)}, lasting(d), shortened(act.Reason, 900)})})
}
