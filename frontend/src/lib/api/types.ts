/** The API's resources by the names that the console uses. Their types are generated. */
import type { components, operations } from "./schema";

type Schemas = components["schemas"];

/** A page of a list. `next_cursor` is null on the last page. */
export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

/** An entry of a cluster's access control list. */
export type Acl = Schemas["Acl"];
/** An ACL that does not exist yet. */
export type AclDraft = Omit<Acl, "id">;
export type AclTemplate = Schemas["AclTemplate"];
export type TemplateName = Schemas["TemplateEnum"];
export type TemplateRequest = Schemas["ApplyTemplateRequest"];
export type ApiKey = Schemas["ApiKey"];
export type ApiKeyCreated = Schemas["ApiKeyCreated"];
export type ClientQuota = Schemas["ClientQuota"];
export type ClientQuotaValues = Schemas["QuotaValuesRequest"];
export type Cluster = Schemas["Cluster"];
/** A time of the week in which a cluster does not sleep. */
export type Schedule = Schemas["Schedule"];
export type ClusterChange = Schemas["PatchedClusterUpdateRequest"];
export type Condition = Schemas["Condition"];
export type ConfigDetail = Schemas["ConfigDetail"];
export type Credential = Schemas["Credential"];
export type CredentialCreated = Schemas["CredentialCreated"];
export type CredentialRole = Credential["role"];
export type Damaged = Schemas["Damaged"];
export type DeletedTopic = Schemas["DeletedTopic"];
export type DeleteRecords = Schemas["DeleteRecordsRequest"];
export type Endpoint = Schemas["Endpoint"];
/** How far somebody has come with a cluster. null: not known, as of a sleeping cluster. */
export type FirstSteps = Schemas["FirstSteps"];
export type Group = Schemas["Group"];
export type GroupMember = Schemas["GroupMember"];
export type GroupPartition = Schemas["GroupPartition"];
export type Header = Schemas["Header"];
export type ListenerName = Endpoint["listener"];
export type LocalMail = Schemas["LocalMail"];
export type Message = Schemas["Message"];
export type NewCluster = Schemas["ClusterCreateRequest"];
export type NewTopic = Schemas["NewTopicRequest"];
export type Operation = Schemas["Operation"];
export type OrphanedTopic = Schemas["OrphanedTopic"];
export type Partition = Schemas["Partition"];
export type Phase = Schemas["Status"]["phase"];
export type BrokerPhase = Schemas["Broker"]["phase"];
export type PlannedOffset = Schemas["PlannedOffset"];
export type LowWatermark = Schemas["LowWatermark"];
export type ProduceRequest = Schemas["ProduceRequest"];
export type Produced = Schemas["Produced"];
export type RecordBytes = Schemas["Bytes"];
export type ResetRequest = Schemas["ResetRequest"];
export type ResetTarget = Exclude<ResetRequest["to"], object>;
export type Role = Schemas["Role"];
export type Session = Schemas["Session"];
export type SkipDamaged = Schemas["SkipDamagedRequest"];
export type SkippedBatch = Schemas["SkippedBatch"];
export type Topic = Schemas["Topic"];

/** The query of a topic's messages, with the place where reading begins. */
export type MessageQuery = NonNullable<
  operations["clusters_topics_messages_retrieve"]["parameters"]["query"]
>;

export type Alert = Schemas["Alert"];
export type AlertKind = Schemas["AlertKind"];
export type AlertChange = Schemas["PatchedAlertUpdateRequest"];
export type NewAlert = Schemas["AlertCreateRequest"];
export type Budget = Schemas["Budget"];
export type BudgetEvent = Schemas["BudgetEvent"];
export type BudgetAction = Schemas["Budget"]["action"];
export type BudgetState = Schemas["Budget"]["state"];
export type CostLine = Schemas["CostLine"];
export type Costs = Schemas["Costs"];
export type MeterPart = Schemas["MeterPart"];
export type Stored = Schemas["Stored"];
export type Invoice = Schemas["Invoice"];
export type InvoiceLine = Schemas["InvoiceLine"];
export type InvoiceState = Schemas["InvoiceState"];
export type InvoiceSummary = Schemas["InvoiceSummary"];
export type InvoicePayment = Schemas["InvoicePayment"];
/** What the organization owes, and what follows from it. */
export type Account = Schemas["Account"];
export type Collector = Account["collector"];
export type DunningStage = Account["stage"];
export type FailureKind = Exclude<Account["failure"], "">;
export type Payment = Schemas["Payment"];
export type PaymentAttempt = Schemas["PaymentAttempt"];
export type PaymentMethod = Schemas["PaymentMethod"];
export type CreditInput = Schemas["CreditInputRequest"];
export type PaymentInput = Schemas["PaymentInputRequest"];
export type RefundInput = Schemas["RefundInputRequest"];
export type WriteOffInput = Schemas["WriteOffInputRequest"];
export type MoneyDifference = Schemas["MoneyDifference"];
export type Reconciliation = Schemas["Reconciliation"];
export type StaffAttempt = Schemas["StaffAttempt"];
export type StaffCredit = Schemas["StaffCredit"];
export type StaffPayment = Schemas["StaffPayment"];
export type StaffReceivable = Schemas["StaffReceivable"];
export type StaffRefund = Schemas["StaffRefund"];
export type NewBudget = Schemas["BudgetCreateRequest"];
export type Price = Schemas["Price"];
export type Prices = Schemas["PriceList"];
export type ReconciledDay = Schemas["ReconciledDay"];
export type UsageFile = Schemas["TracedFile"];
export type UsageItem = Schemas["UsageItem"];
export type UsageRowDetail = Schemas["UsageRow"];
export type PrincipalShare = Schemas["PrincipalShare"];
export type TopicShare = Schemas["TopicShare"];
export type ClosedEarly = Schemas["ClosedEarly"];
export type Party = Schemas["Party"];
export type BillingDetails = Schemas["BillingDetails"];
export type BillingDetailsChange = Schemas["PatchedBillingDetailsRequest"];
export type AuditEntry = Schemas["AuditEntry"];
export type AuditQuery = Omit<
  NonNullable<operations["audit_log_list"]["parameters"]["query"]>,
  "cursor" | "limit"
>;
export type UserSession = Schemas["UserSession"];
export type Enrolment = Schemas["Enrolment"];
export type PasswordChange = Schemas["PasswordChangeRequest"];
export type Member = Schemas["Member"];
export type Invitation = Schemas["Invitation"];
export type NewInvitation = Schemas["InvitationCreateRequest"];
export type Acceptance = Schemas["InvitationAcceptRequest"];
export type Accepted = Schemas["Accepted"];
export type Project = Schemas["Project"];
export type NewProject = Schemas["ProjectCreateRequest"];
export type RoleBinding = Schemas["RoleBinding"];
export type NewRoleBinding = Schemas["RoleBindingCreateRequest"];
export type ProjectRole = Schemas["ProjectRole"];
export type ServiceAccount = Schemas["ServiceAccount"];
export type NewServiceAccount = Schemas["ServiceAccountCreateRequest"];
export type ServiceAccountChange = Schemas["PatchedServiceAccountUpdateRequest"];
export type NewApiKey = Schemas["ApiKeyCreateRequest"];
export type Organization = Schemas["Organization"];
export type OrganizationChange = Schemas["PatchedOrganizationUpdateRequest"];
export type CloseRequest = Schemas["CloseRequest"];
export type Incident = Schemas["Incident"];
export type Limit = Schemas["Limit"];
export type LimitRequest = Schemas["LimitRequest"];
export type NewLimitRequest = Schemas["LimitRequestCreateRequest"];
export type StaffCell = Schemas["StaffCell"];
export type StaffCluster = Schemas["StaffCluster"];
export type StaffIncident = Schemas["StaffIncident"];
export type StaffLimitRequest = Schemas["StaffLimitRequest"];
export type InvoiceMonth = Schemas["InvoiceMonth"];
export type MissingInvoice = Schemas["MissingInvoice"];
export type StaffOperation = Schemas["StaffOperation"];
export type Grant = Schemas["GrantRequest"];
export type Refusal = Schemas["RefuseRequest"];
