import type { ReactElement } from "react";
import { Moment } from "@/components/Moment";
import { Escaped } from "@/components/Name";
import type { LocalMail } from "@/lib/api/types";
import { useView } from "@/lib/useView";
import { linkify } from "../links";
import classes from "./MailList.module.css";

/** The mails of the local folder. The newest one is open. */
export function MailList({ mails }: { mails: readonly LocalMail[] }): ReactElement {
  const [picked, setPicked] = useView("panel");
  const open = mails.find((mail) => mail.id === picked) ?? mails[0];
  return (
    <div className={classes.root}>
      <ul className={classes.list} aria-label="Mails">
        {mails.map((mail) => (
          <li key={mail.id}>
            <button
              type="button"
              className={classes.item}
              aria-current={mail.id === open?.id}
              onClick={() => {
                setPicked(mail.id);
              }}
            >
              <span className={classes.subject}>
                <Escaped text={mail.subject} />
              </span>
              <span className={classes.meta}>
                {mail.to}, <Moment at={mail.sent_at} />
              </span>
            </button>
          </li>
        ))}
      </ul>
      {open && (
        <article className={classes.mail} aria-label={open.subject}>
          <h2 className={classes.title}>
            <Escaped text={open.subject} />
          </h2>
          <p className={classes.meta}>To {open.to}</p>
          <pre className={classes.text}>
            {linkify(open.text).map((part, index) =>
              part.href ? (
                <a key={index} href={part.href}>
                  {part.text}
                </a>
              ) : (
                part.text
              ),
            )}
          </pre>
        </article>
      )}
    </div>
  );
}
