package wire

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/presence"
)

// SaveInstructionBody is an instruction to store.
type SaveInstructionBody struct {
	// Instruction is the instruction, with the version that the caller read. Missing: it is the first to its target.
	Instruction presence.Instruction `json:"instruction"`
	// Reason says why, for the audit.
	Reason string `json:"reason" minLength:"1" maxLength:"1000"`
}

// InstructionView is a stored instruction.
type InstructionView struct {
	presence.Instruction
	// ActID is the act that gave it.
	ActID sluice.ID `json:"act_id,omitzero"`
}

// InstructionViewOf shows an instruction.
func InstructionViewOf(i presence.Instruction) InstructionView { return InstructionView{i, i.ActID} }

// Read reads the view.
func (v InstructionView) Read() presence.Instruction {
	v.Instruction.ActID = v.ActID
	return v.Instruction
}

// HeldJobsBody asks for the claimed jobs of processes.
type HeldJobsBody struct {
	// Holders are the ids of the processes.
	Holders []string `json:"holders" minItems:"1" maxItems:"10000"`
	// Limit is the most jobs.
	Limit int `json:"limit" minimum:"1" maximum:"10000"`
}

// HeldJobList lists claimed jobs.
type HeldJobList struct {
	// Jobs are sorted by queue; of a queue, the longest claimed comes first.
	Jobs []presence.HeldJob `json:"jobs"`
}

// AdmissionView says which new queues the store takes.
type AdmissionView struct {
	// Queues counts the queues of the store, and MaxQueues is the most that it takes.
	Queues    int `json:"queues"`
	MaxQueues int `json:"max_queues"`
	// Declared says that somebody must declare a queue before its first job.
	Declared bool `json:"declared"`
	// Version counts the changes. ChangedAt, ChangedBy and Reason describe the last one. Missing: there was none.
	Version   int64     `json:"version,omitempty"`
	ChangedAt time.Time `json:"changed_at,omitzero"`
	ChangedBy string    `json:"changed_by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// AdmissionViewOf shows a policy.
func AdmissionViewOf(p admission.Policy) AdmissionView {
	return AdmissionView{p.Stored, p.MaxQueues, p.Declared, p.Version, p.ChangedAt, p.ChangedBy, p.Reason}
}

// Read reads the view.
func (v AdmissionView) Read() admission.Policy {
	return admission.Policy{MaxQueues: v.MaxQueues, Declared: v.Declared, Version: v.Version, ChangedAt: v.ChangedAt, ChangedBy: v.ChangedBy, Reason: v.Reason, Stored: v.Queues}
}

// SaveAdmissionBody says which new queues the store shall take.
type SaveAdmissionBody struct {
	// Version is that which the caller read. 0: nobody has changed it.
	Version int64 `json:"version,omitempty"`
	// MaxQueues is the most queues of the store.
	MaxQueues int `json:"max_queues" minimum:"1"`
	// Declared says that somebody must declare a queue before its first job.
	Declared bool `json:"declared,omitempty"`
	// Reason says why, for the audit.
	Reason string `json:"reason" minLength:"1" maxLength:"1000"`
}
