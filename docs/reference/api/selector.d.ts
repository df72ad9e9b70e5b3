export interface GroupRecord {
    readonly id: Id;
    readonly runId: Id;
    readonly taskDigest: Digest;
    readonly promptVariant: string;
    readonly createdAt: number;
}

export type Id = string;

export declare class PaddockError extends Error {
    readonly name = "PaddockError";
    readonly code: ErrorCode;
    readonly data: ErrorData;
    readonly fix: string;
    constructor(code: ErrorCode, message: string, options?: {
        data?: ErrorData;
        fix?: string;
        cause?: unknown;
    });
    get family(): ErrorFamily;
    get status(): number;
    line(): string;
    toJSON(): {
        code: ErrorCode;
        family: ErrorFamily;
        message: string;
        fix: string;
        data: ErrorData;
    };
}

export interface RolloutView extends RolloutRecord {
    readonly taskDigest: Digest;
    readonly work: RolloutWork | null;
    readonly startedAt: number | null;
    readonly endedAt: number | null;
    readonly end: RolloutEnd | null;
    readonly endDetail: string;
    readonly taints: readonly string[];
    readonly verdicts: readonly Verdict[];
    readonly labels: Readonly<Record<string, string>>;
}

export interface Selector {
    readonly name: string;
    readonly apiVersion: 1;
    readonly version: string;
    select(group: SelectorGroup): readonly Id[];
}

export interface SelectorGroup {
    readonly group: GroupRecord;
    readonly task: Task;
    readonly rollouts: readonly {
        readonly rollout: RolloutView;
        readonly verdict: Verdict | null;
    }[];
}

export interface Task {
    readonly digest: Digest;
    readonly name: string;
    readonly environment: string;
    readonly instruction: string;
    readonly split: string;
    readonly data: unknown;
    readonly source: string;
}

export type Verdict = VerdictFacts & ({
    readonly status: 'scored' | 'hacked';
    readonly reward: number;
} | {
    readonly status: Exclude<VerdictStatus, 'scored' | 'hacked'>;
    readonly reward: null;
    readonly reason: string;
});

export declare function defineSelector(spec: Selector): Selector;
