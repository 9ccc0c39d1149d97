//! Keys that the operator reads and writes on Kubernetes objects: annotations, labels, taint, finalizers.
//!
//! In: nothing. Out: constants, and the taint key of a group. Must not: build object names; `crate::names` does.

/// API group of the three kinds.
pub const API_GROUP: &str = "shipstream.io";
/// Version of the three kinds.
pub const API_VERSION: &str = "v1alpha1";
/// Field manager of server-side apply.
pub const FIELD_MANAGER: &str = "bloodraven";

/// Request, on a group: `<site>[:<key>=<value>]...`.
pub const PLANNED_FAILOVER: &str = "bloodraven.shipstream.io/planned-failover";
/// Request, on a group: `<site>`, `<site>:<prefix of divergentGtid>` or `<site>:confirm=<group>`.
pub const RECLONE_SITE: &str = "bloodraven.shipstream.io/reclone-site";
/// Request, on a group: `<image>`.
pub const DRAGONFLY_SNAPSHOT_UPGRADE: &str = "bloodraven.shipstream.io/dragonfly-snapshot-upgrade";
/// Second copy of the authority record, on a group; the operator's own.
pub const AUTHORITY: &str = "bloodraven.shipstream.io/authority";
/// Second copy of the time of the last failover, on a group; the operator's own.
pub const LAST_FAILOVER: &str = "bloodraven.shipstream.io/last-failover";
/// Second copy of the target of the last failover, on a group; the operator's own.
pub const LAST_FAILOVER_TARGET: &str = "bloodraven.shipstream.io/last-failover-target";
/// Server id of the site, on its claim.
pub const SERVER_ID: &str = "bloodraven.shipstream.io/server-id";
/// UID of the group object that made the volume, on its claim; set once.
pub const GROUP_UID: &str = "bloodraven.shipstream.io/group-uid";
/// Hash of what was rendered, on Deployments and pod templates.
pub const SPEC_HASH: &str = "shipstream.io/spec-hash";
/// On every object that the operator applies and that is not secret: which drawing it was made of.
pub const DRAWING: &str = "bloodraven.shipstream.io/drawing";
/// Confirm token of an in-place restore, on its Jobs.
pub const RESTORE_CONFIRM: &str = "bloodraven.shipstream.io/restore-confirm";
/// Keeps a backup from being pruned, on a `MysqlBackup`.
pub const HOLD: &str = "bloodraven.shipstream.io/hold";

/// Label: what runs (`mysql`, `dragonfly`, `mysql-backup`, ...).
pub const LABEL_NAME: &str = "app.kubernetes.io/name";
/// Label: the group.
pub const LABEL_INSTANCE: &str = "app.kubernetes.io/instance";
/// Label: who made it, always [`FIELD_MANAGER`].
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";
/// Label: the group.
pub const LABEL_FAILOVER_GROUP: &str = "shipstream.io/failover-group";
/// Label: the site, on objects of one site.
pub const LABEL_SITE: &str = "shipstream.io/site";
/// Label of MySQL pods: see [`PodRole`].
pub const LABEL_ROLE: &str = "shipstream.io/role";
/// Label of MySQL pods: see [`Healthy`].
pub const LABEL_HEALTHY: &str = "shipstream.io/healthy";
/// Label of Dragonfly pods: `master` or `replica`.
pub const LABEL_DRAGONFLY_ROLE: &str = "shipstream.io/dragonfly-role";
/// Label of Dragonfly pods: `enabled`, or absent.
pub const LABEL_DRAGONFLY_TRAFFIC: &str = "shipstream.io/dragonfly-traffic";
/// Value of [`LABEL_DRAGONFLY_TRAFFIC`].
pub const DRAGONFLY_TRAFFIC_ENABLED: &str = "enabled";
/// Label of backup objects: the backup.
pub const LABEL_BACKUP: &str = "shipstream.io/mysqlbackup";
/// Label of backup objects: the profile.
pub const LABEL_BACKUP_PROFILE: &str = "shipstream.io/backup-profile";
/// Label of backup objects: the schedule.
pub const LABEL_BACKUP_SCHEDULE: &str = "shipstream.io/backup-schedule";
/// Label of backup objects: whether it is encrypted.
pub const LABEL_BACKUP_ENCRYPTED: &str = "shipstream.io/backup-encrypted";
/// Label of backup objects: see [`BackupResource`].
pub const LABEL_RESOURCE: &str = "shipstream.io/resource";
/// Node label that places a site.
pub const LABEL_ZONE: &str = "topology.kubernetes.io/zone";

/// Finalizer of a group.
pub const FINALIZER_GROUP: &str = "shipstream.io/graceful-shutdown";
/// Finalizer of every MySQL pod: its last status outlives any delete.
pub const FINALIZER_INSTANCE: &str = "bloodraven.shipstream.io/instance";
/// Finalizer of a `MysqlBackup`.
pub const FINALIZER_BACKUP: &str = "shipstream.io/mysqlbackup";
/// Finalizer of a `MysqlBackupVerification`.
pub const FINALIZER_VERIFICATION: &str = "shipstream.io/mysqlbackup-verification";

/// Value of the read-only taint.
pub const TAINT_VALUE: &str = "true";
/// Effect of the read-only taint.
pub const TAINT_EFFECT: &str = "NoExecute";

/// Key of the taint that nodes of a group's read-only sites carry.
pub fn taint_key(group: &str) -> String {
    format!("shipstream.io/db-readonly-{group}")
}

crate::string_enum::string_enum! {
    /// Value of [`LABEL_ROLE`].
    pub enum PodRole {
        /// The pod of the record's instance, confirmed writable.
        Primary = "primary",
        /// Any other.
        Replica = "replica",
        /// A holder whose authority was revoked.
        Fenced = "fenced",
    }
}

crate::string_enum::string_enum! {
    /// Value of [`LABEL_HEALTHY`].
    pub enum Healthy {
        /// Reachable, read-only, replicating, lag within bounds.
        Yes = "yes",
        /// Anything else.
        No = "no",
    }
}

crate::string_enum::string_enum! {
    /// Value of [`LABEL_NAME`].
    pub enum Application {
        /// MySQL and what belongs to it.
        Mysql = "mysql",
        /// The cache.
        Dragonfly = "dragonfly",
        /// Backups.
        Backup = "mysql-backup",
        /// Restores.
        Restore = "mysql-restore",
        /// Verifications.
        Verify = "mysql-verify",
        /// Rescues.
        Rescue = "mysql-rescue",
    }
}

crate::string_enum::string_enum! {
    /// Value of [`LABEL_RESOURCE`].
    pub enum BackupResource {
        /// A backup Job.
        Backup = "backup",
        /// A cleanup Job.
        BackupCleanup = "backup-cleanup",
        /// A restore Job.
        Restore = "restore",
        /// A verification Job.
        BackupVerification = "backup-verification",
        /// The CronJob of a schedule.
        BackupSchedule = "backup-schedule",
        /// The CronJob of a profile's verification.
        BackupVerificationSchedule = "backup-verification-schedule",
        /// A rescue Job.
        Rescue = "rescue",
        /// A prune Job.
        Prune = "prune",
    }
}
