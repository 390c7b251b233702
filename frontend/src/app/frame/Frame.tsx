import { useQuery } from "@tanstack/react-query";
import { Outlet, useLocation, useNavigate } from "@tanstack/react-router";
import { type ReactElement, useEffect } from "react";
import { DunningBanner } from "@/features/payments/components/DunningBanner";
import { ProofBanner } from "@/features/session/components/ProofBanner";
import { sessionQuery } from "@/lib/api/session";
import { Figures } from "./Figures";
import classes from "./Frame.module.css";
import { Palette } from "./Palette";
import { Rail } from "./Rail";
import { TopLine } from "./TopLine";

/** The frame around every page: the rail, the top line and the command palette. */
export function Frame(): ReactElement | null {
  const { data: session } = useQuery(sessionQuery);
  const navigate = useNavigate();
  const { href, pathname } = useLocation();
  // On the way to the sign-in the location changes before that page is loaded.
  const leaves = session === null && pathname !== "/signin";
  useEffect(() => {
    if (leaves) void navigate({ to: "/signin", search: { next: href } });
  }, [leaves, navigate, href]);
  if (!session) return null;
  return (
    <div className={classes.frame}>
      <a href="#content" className={classes.skip}>
        Skip to the content
      </a>
      <Rail session={session} />
      <div className={classes.main}>
        <TopLine />
        <main id="content" className={classes.content} tabIndex={-1}>
          <Figures>
            <ProofBanner />
            <DunningBanner />
            <Outlet />
          </Figures>
        </main>
      </div>
      <Palette />
    </div>
  );
}
