"""The header lines of the paper's files."""

from __future__ import annotations

import re

RUN = re.compile(r"(.*?)(\d+)-(\d+)")


def spelled_out(names: str) -> tuple[str, ...]:
    """Names between blanks, of which ``A1-3`` stands for a run of numbered ones.

    >>> spelled_out("AGE HV1-3 RFA_2-3")
    ('AGE', 'HV1', 'HV2', 'HV3', 'RFA_2', 'RFA_3')
    """
    spelled: list[str] = []
    for name in names.split():
        run = RUN.fullmatch(name)
        if run is None:
            spelled.append(name)
        else:
            spelled.extend(f"{run[1]}{number}" for number in range(int(run[2]), int(run[3]) + 1))
    return tuple(spelled)


CENSUS = spelled_out(
    """
    caseid dAge dAncstry1-2 iAvail iCitizen iClass dDepart iDisabl1-2 iEnglish iFeb55 iFertil dHispanic dHour89 dHours
    iImmigr dIncome1-8 dIndustry iKorean iLang1 iLooking iMarital iMay75880 iMeans iMilitary iMobility iMobillim dOccup
    iOthrserv iPerscare dPOB dPoverty dPwgt1 iRagechld dRearning iRelat1-2 iRemplpar iRiders iRlabor iRownchld dRpincome
    iRPOB iRrelchld iRspouse iRvetserv iSchool iSept80 iSex iSubfam1-2 iTmpabsnt dTravtime iVietnam dWeek89 iWork89
    iWorklwk iWWII iYearsch iYearwrk dYrsserv
    """
)
KDD = spelled_out(
    """
    ODATEDW OSOURCE TCODE STATE ZIP MAILCODE PVASTATE DOB NOEXCH RECINHSE RECP3 RECPGVG RECSWEEP MDMAUD DOMAIN CLUSTER
    AGE AGEFLAG HOMEOWNR CHILD03 CHILD07 CHILD12 CHILD18 NUMCHLD INCOME GENDER WEALTH1 HIT MBCRAFT MBGARDEN MBBOOKS
    MBCOLECT MAGFAML MAGFEM MAGMALE PUBGARDN PUBCULIN PUBHLTH PUBDOITY PUBNEWFN PUBPHOTO PUBOPP DATASRCE MALEMILI
    MALEVET VIETVETS WWIIVETS LOCALGOV STATEGOV FEDGOV SOLP3 SOLIH MAJOR WEALTH2 GEOCODE COLLECT1 VETERANS BIBLE CATLG
    HOMEE PETS CDPLAY STEREO PCOWNERS PHOTO CRAFTS FISHER GARDENIN BOATS WALKER KIDSTUFF CARDS PLATES LIFESRC PEPSTRFL
    POP901-903 POP90C1-5 ETH1-16 AGE901-907 CHIL1-3 AGEC1-7 CHILC1-5 HHAGE1-3 HHN1-6 MARR1-4 HHP1-2 DW1-9 HV1-4 HU1-5
    HHD1-12 ETHC1-6 HVP1-6 HUR1-2 RHP1-4 HUPA1-7 RP1-4 MSA ADI DMA IC1-23 HHAS1-4 MC1-3 TPE1-9 PEC1-2 TPE10-13 LFC1-10
    OCC1-13 EIC1-16 OEDC1-7 EC1-8 SEC1-5 AFC1-6 VC1-4 ANC1-15 POBC1-2 LSC1-4 VOC1-3 HC1-21 MHUC1-2 AC1-2 ADATE_2-24
    RFA_2-24 CARDPROM MAXADATE NUMPROM CARDPM12 NUMPRM12 RDATE_3-24 RAMNT_3-24 RAMNTALL NGIFTALL CARDGIFT MINRAMNT
    MINRDATE MAXRAMNT MAXRDATE LASTGIFT LASTDATE FISTDATE NEXTDATE TIMELAG AVGGIFT CONTROLN TARGET_B TARGET_D HPHONE_D
    RFA_2R RFA_2F RFA_2A MDMAUD_R MDMAUD_F MDMAUD_A CLUSTER2 GEOCODE2
    """
)
DMV = (
    "Record Type",
    "VIN",
    "Registration Class",
    "City",
    "State",
    "Zip",
    "County",
    "Model Year",
    "Make",
    "Body Type",
    "Fuel Type",
    "Unladen Weight",
    "Maximum Gross Weight",
    "Passengers",
    "Reg Valid Date",
    "Reg Expiration Date",
    "Color",
    "Scofflaw Indicator",
    "Suspension Indicator",
    "Revocation Indicator",
)
